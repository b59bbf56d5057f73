#include "control/openflow/channel/tls.hh"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstring>
#include <new>
#include <utility>

namespace headrace::openflow {

namespace {

/// The first error of OpenSSL's queue, which is where it began.
std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  if (const char* const reason = ERR_reason_error_string(code)) return reason;
  return fmt::format("error {:#x}", code);
}

}  // namespace

std::shared_ptr<TlsContext> TlsContext::load(const TlsFiles& files, std::string& error) {
  ERR_clear_error();
  std::shared_ptr<TlsContext> context(new TlsContext(SSL_CTX_new(TLS_method())));
  SSL_CTX* const ssl = context->context_;
  if (ssl == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
  SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (SSL_CTX_use_certificate_chain_file(ssl, files.certificate.c_str()) != 1) {
    error = fmt::format("certificate '{}': {}", files.certificate, openssl_error());
  } else if (SSL_CTX_use_PrivateKey_file(ssl, files.private_key.c_str(), SSL_FILETYPE_PEM) != 1 ||
             SSL_CTX_check_private_key(ssl) != 1) {
    error = fmt::format("private key '{}': {}", files.private_key, openssl_error());
  } else if (SSL_CTX_load_verify_locations(ssl, files.ca_certificate.c_str(), nullptr) != 1) {
    error = fmt::format("CA certificate '{}': {}", files.ca_certificate, openssl_error());
  } else {
    return context;
  }
  return nullptr;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsStream::TlsStream(std::shared_ptr<TlsContext> context, bool accepts)
    : context_(std::move(context)),
      ssl_(SSL_new(context_->context_)),
      in_(BIO_new(BIO_s_mem())),
      out_(BIO_new(BIO_s_mem())) {
  if (ssl_ == nullptr || in_ == nullptr || out_ == nullptr) throw std::bad_alloc();
  SSL_set_bio(ssl_, in_, out_);
  if (accepts) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
    ERR_clear_error();
    (void)SSL_do_handshake(ssl_);  // writes the first message; receive() finds errors
  }
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

bool TlsStream::secure() const { return SSL_is_init_finished(ssl_) == 1; }

bool TlsStream::failed(int result) {
  const int why = SSL_get_error(ssl_, result);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return false;
  if (why == SSL_ERROR_ZERO_RETURN) return true;
  const long verified = SSL_get_verify_result(ssl_);
  error_ = openssl_error();
  if (verified != X509_V_OK) error_ += fmt::format(": {}", X509_verify_cert_error_string(verified));
  return true;
}

bool TlsStream::receive(std::span<const uint8_t> cipher, std::vector<uint8_t>& plain) {
  ERR_clear_error();
  if (BIO_write(in_, cipher.data(), static_cast<int>(cipher.size())) != static_cast<int>(cipher.size())) {
    error_ = "out of memory";
    return false;
  }
  for (;;) {
    constexpr size_t kRecord = 16384;
    const size_t before = plain.size();
    plain.resize(before + kRecord);
    const int n = SSL_read(ssl_, plain.data() + before, kRecord);
    plain.resize(before + static_cast<size_t>(n > 0 ? n : 0));
    if (n <= 0) return !failed(n);
  }
}

bool TlsStream::send(std::span<const uint8_t> plain) {
  ERR_clear_error();
  // A buffer in memory takes everything.
  const int n = SSL_write(ssl_, plain.data(), static_cast<int>(plain.size()));
  if (n == static_cast<int>(plain.size())) return true;
  if (!failed(n)) error_ = "not written";
  return false;
}

void TlsStream::take(std::vector<uint8_t>& cipher) {
  const size_t size = BIO_ctrl_pending(out_);
  if (size == 0) return;
  const size_t before = cipher.size();
  cipher.resize(before + size);
  (void)BIO_read(out_, cipher.data() + before, static_cast<int>(size));
}

}  // namespace headrace::openflow
