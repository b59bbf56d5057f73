#include "io/memory/payloads.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "headrace/packet_pool.hh"

namespace headrace {

namespace {

constexpr std::string_view kWords[] = {
    "about",  "access",  "amount", "answer",  "arrow",   "bottle", "bridge",  "button", "camera",  "castle",  "change",
    "circle", "client",  "corner", "country", "data",    "day",    "detail",  "dinner", "doctor",  "engine",  "evening",
    "family", "field",   "finger", "forest",  "garden",  "glass",  "harbor",  "height", "history", "home",    "image",
    "index",  "island",  "items",  "journey", "kitchen", "letter", "light",   "list",   "login",   "market",  "member",
    "minute", "morning", "museum", "nature",  "number",  "office", "orange",  "page",   "paper",   "pencil",  "people",
    "player", "price",   "public", "queue",   "quiet",   "reason", "report",  "river",  "school",  "season",  "second",
    "server", "shadow",  "signal", "spring",  "static",  "street", "summer",  "system", "table",   "theatre", "ticket",
    "travel", "user",    "valley", "version", "village", "water",  "weather", "window", "winter",  "world",   "year"};
constexpr std::string_view kBrowsers[] = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 "
    "Safari/605.1.15",
    "curl/8.5.0"};
constexpr std::string_view kKinds[] = {"", ".html", ".php", ".js", ".css", ".png", ".jpg", "/"};
constexpr std::string_view kDomains[] = {"com", "org", "net", "example"};

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  std::string request() {
    const std::string host = fmt::format("www.{}{}.{}", word(), word(), one_of(kDomains));
    std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\n", chance(10) ? "POST" : "GET",
                                   path(), host, one_of(kBrowsers));
    text += "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.7\r\n";
    text += fmt::format("Accept-Encoding: gzip, br\r\nReferer: https://{}{}\r\n", host, path());
    return text + fmt::format("Cookie: id={:016x}{:016x}; {}={}\r\nConnection: keep-alive\r\n\r\n", random_(),
                              random_(), word(), below(100000));
  }
  std::string response() {
    const bool html = chance(55);
    const std::string body = html ? page() : records();
    return fmt::format(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 21 Nov 2026 {:02}:{:02}:{:02} GMT\r\nContent-Type: {}\r\n"
        "Content-Length: {}\r\nCache-Control: max-age={}\r\nETag: \"{:x}\"\r\n\r\n{}",
        below(24), below(60), below(60), html ? "text/html; charset=utf-8" : "application/json", body.size(),
        below(7200), random_(), body);
  }
  bool chance(uint32_t percent) { return below(100) < percent; }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  template <typename List>
  std::string_view one_of(const List& list) {
    return list[random_() % std::size(list)];
  }
  std::string_view word() { return one_of(kWords); }
  std::string path() {
    std::string text;
    for (uint32_t n = 1 + below(4); n > 0; --n) text += fmt::format("/{}", word());
    text += one_of(kKinds);
    if (chance(35)) text += fmt::format("?{}={}&{}={}", word(), word(), word(), below(10000));
    return text;
  }
  std::string sentence(uint32_t words) {
    std::string text;
    for (; words > 0; --words) text += fmt::format("{} ", word());
    return text;
  }
  std::string page() {
    std::string text =
        fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>{}</title></head>\n<body>\n", sentence(4));
    for (uint32_t n = 4 + below(40); n > 0; --n)
      text += fmt::format("<div class=\"{}-{}\"><a href=\"{}\">{}</a></div>\n", word(), word(), path(),
                          sentence(2 + below(11)));
    return text + "</body>\n</html>\n";
  }
  std::string records() {
    std::string text = "[";
    for (uint32_t n = 4 + below(40); n > 0; --n)
      text += fmt::format("{{\"{}\":\"{}{}\",\"{}\":{},\"{}\":null}},", word(), sentence(1), word(), word(),
                          below(1000000), word());
    text.back() = ']';
    return text;
  }

  std::mt19937_64 random_;
};

}  // namespace

std::string make_text_payload(size_t bytes, uint64_t seed) {
  Writer writer(seed);
  std::string text;
  while (text.size() < bytes) text += writer.chance(45) ? writer.request() : writer.response();
  text.resize(bytes);
  return text;
}

std::string make_random_payload(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(bytes, '\0');
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(text.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return text;
}

void fill_buffers(std::string_view content) {
  PacketPool& pool = PacketPool::instance();
  pool.prepare();
  std::vector<Packet*> packets(pool.buffers());
  const uint32_t n = pool.allocate_shared(packets.data(), static_cast<uint32_t>(packets.size()));
  constexpr size_t kPart = PacketPool::kDataRoom;
  // Steps by a prime, so that buffers begin at all places of the content.
  constexpr size_t kStep = 7919;
  size_t at = 0;
  for (uint32_t i = 0; i < n; ++i, at = (at + kStep) % (content.size() - kPart))
    std::memcpy(packets[i]->buffer(), content.data() + at, kPart);
  pool.release_shared(packets.data(), n);
}

}  // namespace headrace
