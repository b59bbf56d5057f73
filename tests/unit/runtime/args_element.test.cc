#include <gtest/gtest.h>

#include <string>

#include "headrace/args.hh"
#include "headrace/element.hh"

namespace headrace {
namespace {

class Animal : public Element {};
class Dog : public Animal {};

class Zoo : public NameScope {
 public:
  Element* find_element(std::string_view name) const override {
    return name == "rex" ? &rex : name == "some pet" ? &pet : nullptr;
  }
  mutable Dog rex;
  mutable Animal pet;
};

class ElementArgs : public ::testing::Test {
 protected:
  template <typename T>
  std::string read(std::string text, T*& out) {
    Errors errors;
    Args args({"PET " + text}, &zoo, errors);
    (void)args.read("PET", out).complete();
    return errors.str();
  }
  Zoo zoo;
};

TEST_F(ElementArgs, ByName) {
  Element* element = nullptr;
  EXPECT_EQ(read("rex", element), "");
  EXPECT_EQ(element, &zoo.rex);
  EXPECT_EQ(read("'some pet'", element), "");
  EXPECT_EQ(element, &zoo.pet);
  EXPECT_EQ(read("cat", element), "PET: does not name an element\n");
  EXPECT_EQ(read("rex rex", element), "PET: does not name an element\n");
  EXPECT_EQ(element, &zoo.pet);
}

TEST_F(ElementArgs, OfAClass) {
  Dog* dog = nullptr;
  EXPECT_EQ(read("rex", dog), "");
  EXPECT_EQ(dog, &zoo.rex);
  EXPECT_EQ(read("'some pet'", dog), "PET: element type mismatch, expected Dog\n");
  EXPECT_EQ(read("cat", dog), "PET: does not name an element\n");
  EXPECT_EQ(dog, &zoo.rex);
  Animal* animal = nullptr;
  EXPECT_EQ(read("rex", animal), "");
  EXPECT_EQ(animal, &zoo.rex);
}

TEST_F(ElementArgs, NoScopeNoElements) {
  Errors errors;
  Element* element = nullptr;
  Args args({"PET rex"}, nullptr, errors);
  EXPECT_FALSE(args.read("PET", element).complete().ok());
  EXPECT_EQ(errors.str(), "PET: does not name an element\n");
}

TEST(ClassName, OfBothCompilers) {
  EXPECT_EQ(detail::class_name_of("std::string_view f() [with T = headrace::Queue; std::string_view = x]"), "Queue");
  EXPECT_EQ(detail::class_name_of("std::string_view f() [T = headrace::Queue]"), "Queue");
  EXPECT_EQ(detail::class_name_of("f() [T = a::Host<b::Shader>]"), "Host<b::Shader>");
  EXPECT_EQ(detail::class_name<Dog>(), "Dog");
}

}  // namespace
}  // namespace headrace
