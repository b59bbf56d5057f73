#pragma once
/// \file
/// Everything that a shader's header includes. A shader is the part of an element that runs on a CPU or on a GPU:
/// parameters and one function, `shade`, that processes one packet and chooses its next.
///
///     struct DecIPTTL : Shader<DecIPTTL> {
///       static constexpr Ports kPorts{"1/1-2"};
///       static constexpr auto kRegions = regions(ReadWrite{ip4::ttl}, ReadWrite{ip4::checksum});
///       Status configure(Args& args);
///       HEADRACE_SHADER Next shade(auto& p) const { ... }
///     };
///     HEADRACE_ELEMENT(DecIPTTL)
///
/// `p` is a packet view with get(field), set(field, value), and the other functions of CpuView in cpu_view.hh. Access
/// to a field that kRegions does not declare does not compile. A shader is trivially copyable: it consists of numbers,
/// addresses, and table views.
///
/// A packet without a header that the regions name never reaches `shade`: it is dropped and counted, unless the shader
/// declares `static constexpr bool kChecksHeaders = true` and checks the headers itself (has_network_header()).
///
/// Optional: the constants for which Shader has defaults (shader_base.hh), and hooks, which are functions that the
/// element calls if the shader has them (shader_hooks.hh lists them all; the build rejects any other public function).
/// `configure`, `add_handlers` and `initialize` are those of Element. `escape` is the host body for slots that returned
/// kEscape. What a shader needs but must not contain (a table's owner, strings) goes into a class `Owner`, named by
/// `using Owner = ...`. These hooks may then take the owner as a further argument, and `refresh(const Owner&)` is
/// called before each batch to get the current view of a table. `shade_batch` is a CPU body for a whole batch, where
/// that is faster; a test checks that it gives the same results as `shade`.
///
/// A shader that scans payloads has `scan` and another form of `shade`: see payload_shader.hh.
///
/// For devices: `mirror` replaces addresses in the shader by those of a device's copies; a shader that has `refresh`
/// but no `mirror` stays on the host. `move` predicts where headers will be; `extent` tells which bytes of declared
/// spans this element uses, `usually_written` which of them most packets come back with. They only reduce transfers. In `shade`, loads at offsets known only at run time (load8 and
/// the like) come before the first set, store and count: if such a load needs bytes that are not in the row, the host
/// processes the element from its beginning.

#include "headrace/device/lane_view.hh"
#include "headrace/payload_shader.hh"

#if defined(__CUDACC_RTC__) || defined(HEADRACE_PROGRAM)
#define HEADRACE_ELEMENT(Name)
#define HEADRACE_ELEMENT_ALIAS(Alias, Name)
#else
#include "headrace/element.hh"
#include "headrace/shader_host.hh"
#endif
