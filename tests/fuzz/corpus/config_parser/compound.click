elementclass Shaped { $rate, QUEUE $q, __REST__ $rest |
  input -> Queue($q) -> Shaper($rate, $rest) -> output
|| $rate | input -> Queue -> Shaper($rate) -> output }
elementclass Queue { $a, $b | -> Queue($a) -> Null($b) -> || ... }
elementclass Same Shaped;
Idle -> Same(1, QUEUE 5, X y) -> x :: { [0], [1] -> Null -> } -> Discard;
Idle -> [1] x; Idle -> Shaped(2) -> { -> Queue(1, 2) -> } -> Discard;
