#include "tables/pattern/text_model.hh"

#include <cmath>

#include "tables/pattern/pattern_set.hh"

namespace headrace {

namespace {

// Written for this purpose; what matters is which pairs of bytes are common.
constexpr std::string_view kSample =
    "GET /index.html HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64; "
    "rv:109.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Gecko/20100101 Firefox/115.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\nConnection: keep-alive\r\n"
    "Referer: http://www.example.com/search.php?id=12345&name=value&page=2&lang=en&action=view\r\n"
    "Cookie: PHPSESSID=0123456789abcdef; session_id=a1b2c3d4e5; _ga=GA1.2.1234567890.1600000000; path=/\r\n"
    "Upgrade-Insecure-Requests: 1\r\nCache-Control: no-cache\r\nPragma: no-cache\r\nContent-Type: "
    "application/x-www-form-urlencoded; charset=UTF-8\r\nContent-Length: 1234\r\n\r\n"
    "POST /login.asp HTTP/1.0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"image.jpg\"\r\n\r\n"
    "HTTP/1.1 200 OK\r\nServer: Apache/2.4.41 (Unix) OpenSSL/1.1.1\r\nDate: Mon, 01 Jan 2020 00:00:00 GMT\r\n"
    "Last-Modified: Tue, 15 Nov 2019 12:45:26 GMT\r\nETag: \"3f80f-1b6-3e1cb03b\"\r\nVary: Accept-Encoding\r\n"
    "Set-Cookie: user=guest; expires=Fri, 31 Dec 2021 23:59:59 GMT; path=/; domain=.example.com; HttpOnly\r\n"
    "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\nX-Powered-By: PHP/7.4.3\r\n\r\n"
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta http-equiv=\"Content-Type\" content=\"text/html; "
    "charset=utf-8\" />\n<title>Welcome to the home page of our company</title>\n<link rel=\"stylesheet\" "
    "type=\"text/css\" href=\"/css/style.css\" />\n<script type=\"text/javascript\" src=\"/js/jquery.min.js\">"
    "</script>\n<script>\nvar x = document.getElementById('content');\nfunction load(url, data) {\n  if (x != null "
    "&& data.length > 0) {\n    for (var i = 0; i < data.length; i++) {\n      x.innerHTML += '<li>' + data[i] + "
    "'</li>';\n    }\n    return true;\n  } else {\n    window.location = url;\n  }\n}\n</script>\n</head>\n<body "
    "class=\"main\">\n<div id=\"header\" class=\"container\"><a href=\"http://www.example.com/\"><img "
    "src=\"/images/logo.png\" alt=\"logo\" width=\"100\" height=\"50\" border=\"0\" /></a></div>\n<table "
    "cellpadding=\"0\" cellspacing=\"0\"><tr><td align=\"center\">&nbsp;</td></tr></table>\n<p>This is the place "
    "where people find the information that they are looking for: news, articles, contact and support. There are "
    "many things to see and the more you read, the better it will be. In the beginning we were not sure whether "
    "this would work, but with the help of others it has become one of the largest sites on the Internet. All "
    "rights reserved.</p>\n<form action=\"/cgi-bin/search\" method=\"post\"><input type=\"hidden\" name=\"id\" "
    "value=\"1\" /><input type=\"submit\" value=\"Search\" /></form>\n</body>\n</html>\n"
    "{\"status\": \"ok\", \"user\": {\"id\": 1001, \"name\": \"admin\", \"email\": \"user@example.com\"}, "
    "\"items\": [1, 2, 3], \"token\": \"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9\"}\r\n"
    "USER anonymous\r\nPASS guest\r\nMAIL FROM:<user@example.org>\r\nRCPT TO:<root@localhost>\r\nSubject: Re: your "
    "message\r\nReceived: from mail.example.net (unknown [192.168.1.1]) by mx.example.org with ESMTP id "
    "12AB34CD\r\nMIME-Version: 1.0\r\nSELECT name, password FROM users WHERE id = 1 ORDER BY name\r\n"
    "This program cannot be run in DOS mode.\r\nC:\\WINDOWS\\system32\\cmd.exe /c dir ../../../etc/passwd";

}  // namespace

TextModel::TextModel() : pair_(65536) {
  std::vector<float> pairs(65536);
  std::array<float, 256> singles{};
  const auto learn = [&](unsigned char first, unsigned char second, float weight) {
    pairs[size_t{fold_case(first)} << 8 | fold_case(second)] += weight;
    singles[fold_case(first)] += weight;
  };
  for (size_t i = 0; i + 1 < kSample.size(); ++i) {
    learn(static_cast<unsigned char>(kSample[i]), static_cast<unsigned char>(kSample[i + 1]), 1);
  }
  // Padding and small binary numbers.
  learn(0x00, 0x00, 1500);
  learn(0xff, 0xff, 400);
  learn(0x20, 0x20, 300);
  learn(0x90, 0x90, 60);
  learn('a', 'a', 60);
  for (int byte = 0; byte < 256; ++byte) {
    learn(0x00, static_cast<unsigned char>(byte), 2);
    learn(static_cast<unsigned char>(byte), 0x00, 2);
  }
  // As if a random byte followed each byte a few times.
  constexpr float kRandom = 6;
  float all = 0;
  for (int byte = 0; byte < 256; ++byte) {
    singles[static_cast<size_t>(byte)] += kRandom;
    all += singles[static_cast<size_t>(byte)];
  }
  for (size_t first = 0; first < 256; ++first) {
    single_[first] = std::log(singles[first] / all);
    for (size_t second = 0; second < 256; ++second) {
      const float seen = pairs[first << 8 | second] + kRandom * singles[second] / all;
      pair_[first << 8 | second] = std::log(seen / singles[first]);
    }
  }
}

double TextModel::log_chance(std::string_view bytes) const {
  if (bytes.empty()) return 0;
  size_t last = fold_case(static_cast<unsigned char>(bytes[0]));
  double chance = single_[last];
  for (const char c : bytes.substr(1)) {
    const size_t next = fold_case(static_cast<unsigned char>(c));
    chance += pair_[last << 8 | next];
    last = next;
  }
  return chance;
}

}  // namespace headrace
