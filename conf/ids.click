// An intrusion detection system: frames of a capture, or of an interface, are searched by the rules of Snort and Suricata.
//
//     headrace run conf/ids.click
//     headrace run conf/ids.click DEV=eth0 RULES=/etc/suricata/rules/suricata.rules
//     headrace run --mode device conf/ids.click
//
// Each alert is one line of JSON on standard output, as Suricata's eve.json has it, at most a few a second for each rule.
// RULES: a file of rules. DEV: where frames come from; pcap:FILE is a capture file, whose end stops the router.

define($DEV pcap:data/ids-sample.pcap, $RULES data/sample.rules);

FromDevice($DEV, STOP true)
	-> ids :: IDSMatcher(RULES $RULES, ALERTS -)
	-> quiet :: Counter -> Discard;
ids[1] -> alerted :: Counter -> Discard;
