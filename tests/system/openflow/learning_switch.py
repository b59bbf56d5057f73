"""The learning switch of os-ken's tutorial (https://docs.openstack.org/os-ken/latest/writing_os_ken_app.html and
"switching_hub") for OpenFlow 1.3, and the same for 1.0. VERSION=1.0 or 1.3 says which.

A packet that no entry matches comes here; its source is learned; if the destination's port is known an entry sends the next
ones there, else the packet is flooded."""

import os

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

OLD = os.environ["VERSION"] == "1.0"


class LearningSwitch(app_manager.OSKenApp):
    OFP_VERSIONS = [(ofproto_v1_0 if OLD else ofproto_v1_3).OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event):
        datapath = event.msg.datapath
        if not OLD:  # in 1.0 what no entry matches comes here by itself
            ofp, parser = datapath.ofproto, datapath.ofproto_parser
            self.add(datapath, 0, parser.OFPMatch(), [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)])
        print("ready", flush=True)

    def add(self, datapath, priority, match, actions):
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        if OLD:
            what = {"actions": actions}
        else:
            what = {"instructions": [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]}
        datapath.send_msg(parser.OFPFlowMod(datapath=datapath, priority=priority, match=match, **what))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        message = event.msg
        datapath = message.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        in_port = message.in_port if OLD else message.match["in_port"]
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        ports = self.ports.setdefault(datapath.id, {})
        ports[frame.src] = in_port
        out_port = ports.get(frame.dst, ofp.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        print(f"packet-in {in_port} {frame.src} {frame.dst}", flush=True)
        if out_port != ofp.OFPP_FLOOD:
            match = (parser.OFPMatch(in_port=in_port, dl_dst=frame.dst, dl_src=frame.src) if OLD else
                     parser.OFPMatch(in_port=in_port, eth_dst=frame.dst, eth_src=frame.src))
            self.add(datapath, 1, match, actions)
        data = message.data if message.buffer_id == ofp.OFP_NO_BUFFER else None
        datapath.send_msg(parser.OFPPacketOut(datapath=datapath, buffer_id=message.buffer_id, in_port=in_port,
                                              actions=actions, data=data))
