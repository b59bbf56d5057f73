x :: ; -> Idle; y [1 2 -> z ] ); elementclass { $a $b | input [1] -> } (( ->
define(a, $b 1, $b 2); require(library nowhere); { ... } x :: Idle(
