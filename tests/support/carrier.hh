#pragma once
/// \file
/// Carriers: what runs the chains of a test's routers. Every element's own tests run on the CPU, and again on other
/// carriers; at the end of such a run, shaders that no job carried are a failure.

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/devices.hh"
#include "backend/reference/reference_backend.hh"
#include "headrace/element.hh"

namespace headrace::testing {

enum class Carrier {
  kCpu,        ///< no engine: from element to element
  kCompiled,   ///< no engine: compiled for the CPU
  kReference,  ///< the plans, on rows
  kProgram,    ///< the generated program, compiled for the host, on rows
  kCuda        ///< the generated program on a device
};

std::string carrier_name(Carrier carrier);
void PrintTo(Carrier carrier, std::ostream* out);

/// The carrier of TestRouters in this process: HEADRACE_TEST_CARRIER in the environment, `cpu` by default.
Carrier test_carrier();

/// Runs the tests: all of them on the CPU; on another carrier those of elements, and then the check that every shader
/// that can be part of a chain was carried. With a --gtest_filter of one's own there is no such check.
int run_tests(int argc, char** argv);

/// While it lives, routers are given devices of `carrier` that record which classes they carried.
class CarrierDevices {
 public:
  explicit CarrierDevices(Carrier carrier);
  ~CarrierDevices();
  CarrierDevices(const CarrierDevices&) = delete;
  CarrierDevices& operator=(const CarrierDevices&) = delete;
};

/// Notes an element of a test's router, if it is a shader that can be part of a chain.
void expect_carried(const Element& element);

/// Fails the test unless the chains of a router have been compiled, and notes their elements as above.
void expect_compiled(const Router& router);
/// Notes the elements of compiled chains that ran.
void note_compiled(const Router& router);

/// Compiles generated programs for this process. Runners stay valid until it ends.
/// \param messages the compiler's, when the result is null
offload::ReferenceBackend::Runner compile_program(const std::string& source, std::string& messages);
/// Why generated programs cannot be compiled here; empty when they can.
const std::string& why_no_compiler();
/// Compiles a source that includes embedded headers. \param as_program without the standard library, as for a device
/// \return the compiler's messages, empty if there are none
std::string compile_text(const std::string& source, bool as_program);

}  // namespace headrace::testing
