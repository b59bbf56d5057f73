// libpcap's static library brings libdbus, whose server half asks systemd for sockets it was started with. Headrace is
// no such service and opens capture files only, so the answer is that there are none.
extern "C" {
int sd_listen_fds(int unset_environment);
int sd_is_socket(int fd, int family, int type, int listening);
}

int sd_listen_fds(int /*unset_environment*/) { return 0; }
int sd_is_socket(int /*fd*/, int /*family*/, int /*type*/, int /*listening*/) { return 0; }
