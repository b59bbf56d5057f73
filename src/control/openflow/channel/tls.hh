#pragma once
/// \file
/// TLS for connections, by OpenSSL. Bytes in, bytes out: sockets are link.hh's business.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

namespace headrace::openflow {

/// Files in PEM form. As in Open vSwitch both sides have a certificate that the authority has signed.
struct TlsFiles {
  std::string private_key, certificate, ca_certificate;
  auto operator<=>(const TlsFiles&) const = default;
};

/// Key, certificate and authority, read once.
class TlsContext {
 public:
  /// Null with the reason, which names the file, in `error`.
  static std::shared_ptr<TlsContext> load(const TlsFiles& files, std::string& error);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsStream;
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

/// One connection. Of TLS 1.2 or newer; the peer must have a certificate that the authority has signed.
class TlsStream {
 public:
  TlsStream(std::shared_ptr<TlsContext> context, bool accepts);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  /// Whether application data can be sent.
  bool secure() const;
  /// Takes what the peer has sent and appends what it means to `plain`. The handshake goes on by itself. False: the
  /// connection is over; error() says why, and is empty if the peer has ended it as it should.
  bool receive(std::span<const uint8_t> cipher, std::vector<uint8_t>& plain);
  /// Encrypts `plain`. Only when secure().
  bool send(std::span<const uint8_t> plain);
  /// Moves what is to be sent to the peer to the end of `cipher`.
  void take(std::vector<uint8_t>& cipher);
  const std::string& error() const { return error_; }

 private:
  bool failed(int result);

  std::shared_ptr<TlsContext> context_;
  ssl_st* ssl_;
  bio_st* in_;  // of ssl_, like the next
  bio_st* out_;
  std::string error_;
};

}  // namespace headrace::openflow
