// A queue between two ends, with everything that a first configuration has.
define($LIMIT 10, $data "a b");
source :: InfiniteSource(DATA $data, LIMIT ${LIMIT}, STOP true);
source -> c :: Classifier(12/0800, -) -> Queue(100) -> Discard;
c [1] -> Print("other") -> [0] Discard;
