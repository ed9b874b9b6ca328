/** The rules of the router: they count what the nodes send, and lose what ports that are cut would carry. */
import type { Host } from "../support/host.ts";

/** Packets. */
export interface Seen {
  readonly vxlan: number;
  /** Of packets between nodes; what is inside of a tunnel does not count. */
  readonly fragments: number;
  /** Messages that a packet is larger than the MTU of a link. */
  readonly tooBig: number;
}

const TABLES = `
table bridge seen {
  counter vxlan {}
  counter fragments {}
  counter toobig {}
  set cut { type ifname; }
  chain arriving {
    type filter hook prerouting priority -300;
    iifname @cut drop
    udp dport 4789 counter name vxlan
    ip frag-off & 0x3fff != 0 counter name fragments
    exthdr frag exists counter name fragments
    icmp type destination-unreachable icmp code frag-needed counter name toobig
    icmpv6 type packet-too-big counter name toobig
  }
  chain leaving {
    type filter hook postrouting priority -300;
    oifname @cut drop
  }
}
table inet router {
  chain forward {
    type filter hook forward priority 0;
    iifname west oifname west drop
    iifname east oifname east drop
  }
}`;

export async function installRules(router: Host): Promise<void> {
  await router.must(["nft", "-f", "-"], { stdin: TABLES });
}

export async function readSeen(router: Host): Promise<Seen> {
  const text = await router.must(["nft", "list", "counters", "table", "bridge", "seen"]);
  const count = (name: string) => Number(new RegExp(`counter ${name} \\{\\s+packets (\\d+)`).exec(text)?.[1]);
  return { vxlan: count("vxlan"), fragments: count("fragments"), tooBig: count("toobig") };
}
