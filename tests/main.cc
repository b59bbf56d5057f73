#include "support/carrier.hh"

int main(int argc, char** argv) { return headrace::testing::run_tests(argc, argv); }
