// Packets of many associations are encrypted, from memory to memory. CONFIG is made by ipsec_config.py.
define($CONFIG ipsec.cfg, $LENGTH 1024);

db :: IPsecDatabase(CONFIG $CONFIG);
TrafficSource(uniform, LENGTH $LENGTH, PAYLOAD random)
	-> Offload(MODE cpu)	// a chain of its own, for it ends at an element of the host
	-> Strip(14)
	-> CheckIPHeader
	-> IPsecPolicy(db, out)
	-> IPsecESPEncap(db)
	-> IPsecAES(db, ENCRYPT true)
	-> IPsecAuthHMACSHA1(db, VERIFY false)
	-> TrafficSink;
