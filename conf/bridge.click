// A learning bridge between two network interfaces of Linux.
//
//     headrace run conf/bridge.click DEV0=eth0 DEV1=eth1
//
// Addresses that send nothing for TIMEOUT seconds are forgotten. The interfaces need no addresses; the kernel does not see
// the frames. For a third interface write three lines more, with the next input and output of the switch. There is no
// spanning tree: do not bridge the same two networks twice. `switch.table` shows what was learned.

define($DEV0 eth0, $DEV1 eth1, $TIMEOUT 300);

switch :: EtherSwitch(TIMEOUT $TIMEOUT);

FromDevice($DEV0, SNIFFER false, PROMISC true) -> [0] switch;
FromDevice($DEV1, SNIFFER false, PROMISC true) -> [1] switch;
switch[0] -> Queue -> ToDevice($DEV0);
switch[1] -> Queue -> ToDevice($DEV1);
