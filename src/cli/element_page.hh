#pragma once
/// \file
/// An element's page: the comment before its class, in its header.

#include <string>
#include <string_view>

#include "headrace/element.hh"

namespace headrace::cli {

/// The lines of the `///` comment that stands directly before the class or struct called `name`, each without its
/// slashes and one blank; empty when there is none.
std::string doc_comment(std::string_view header, std::string_view name);

/// The page of an element from its header in the binary; empty when it has none.
std::string element_page(const ElementInfo& info);

/// The first sentence of a page, in one line.
std::string summary_of(std::string_view page);

}  // namespace headrace::cli
