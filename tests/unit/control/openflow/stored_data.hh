#pragma once
/// \file
/// Tests that read tests/data/openflow.

#include <gtest/gtest.h>

#include <filesystem>

#include "support/source_dir.hh"

namespace headrace::openflow {

struct StoredData : testing::Test {
  void SetUp() override {
    if (!std::filesystem::is_directory(kSourceDir)) GTEST_SKIP() << "the source tree is not on this machine";
  }
};

}  // namespace headrace::openflow
