import { describe, expect, test } from "bun:test";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { draftPolicy } from "./draft-policy.ts";
import { parseLogLine } from "./log-lines.ts";

const OWN = "Nov 16 22:01:02 host-1 kernel: [ 7.1] vendor allow-all-upgrade ingress rule 1: ";
const FORMER = "Nov 16 22:01:02 host-1 kernel: [ 7.1] vendor-packet: ";
const TCP_IN = (source: string, port: number) =>
  `IN=eth0 OUT= MAC=aa:bb SRC=${source} DST=10.0.0.1 LEN=60 TOS=0x00 TTL=64 ID=1 DF PROTO=TCP SPT=40000 DPT=${port} SYN`;
const LOG = [
  `${OWN}${TCP_IN("10.0.0.9", 22)}`,
  `${FORMER}${TCP_IN("10.0.0.9", 22)}`,
  `kernel: default.allow-all-upgrade ingress ${TCP_IN("10.0.0.10", 22)}`,
  `${FORMER}${TCP_IN("10.0.0.10", 9100)}`,
  `${FORMER}${TCP_IN("10.0.0.9", 9100)}`,
  `${FORMER}IN=eth0 OUT= SRC=10.0.0.9 DST=10.0.0.1 PROTO=UDP SPT=1 DPT=53 LEN=40`,
  `${FORMER}IN= OUT=eth0 SRC=10.0.0.1 DST=2001:0db8:0000:0000:0000:0000:0000:0001 PROTO=TCP SPT=1 DPT=443`,
  `${FORMER}IN=eth0 OUT= SRC=10.0.0.9 DST=10.0.0.1 LEN=84 PROTO=ICMP TYPE=8 CODE=0 ID=1 SEQ=1`,
  `${FORMER}IN=eth0 OUT= SRC=10.0.0.9 DST=10.0.0.1 PROTO=ICMP TYPE=3 CODE=3 [SRC=10.0.0.1 DST=10.0.0.9 PROTO=UDP DPT=5 ]`,
  `${FORMER}IN=eth0 OUT= SRC=10.0.0.9 DST=10.0.0.1 PROTO=47`,
  `${FORMER}IN=eth0 OUT=eth1 SRC=10.0.0.9 DST=10.9.0.1 PROTO=TCP SPT=1 DPT=80`,
  `kernel: other-policy ingress ${TCP_IN("10.0.0.66", 6)}`,
  "systemd[1]: Started vendor-packet thing",
];
const packets = LOG.flatMap((line) => parseLogLine(line) ?? []);

describe("draftPolicy()", () => {
  const policy = draftPolicy(packets, { name: "hosts", selector: "role == 'edge'" });

  test("allows each peer, protocol and port once", () => {
    expect(policy.spec).toMatchObject({
      selector: "role == 'edge'",
      types: ["Ingress", "Egress"],
      ingress: [
        { action: "Allow", protocol: "ICMP", icmp: { type: 3, code: 3 }, source: { nets: ["10.0.0.9/32"] } },
        { action: "Allow", protocol: "ICMP", icmp: { type: 8, code: 0 }, source: { nets: ["10.0.0.9/32"] } },
        {
          action: "Allow",
          protocol: "TCP",
          source: { nets: ["10.0.0.10/32", "10.0.0.9/32"] },
          destination: { ports: [22, 9100] },
        },
        { action: "Allow", protocol: "UDP", source: { nets: ["10.0.0.9/32"] }, destination: { ports: [53] } },
        { action: "Allow", protocol: 47, source: { nets: ["10.0.0.9/32"] } },
      ],
      egress: [{ action: "Allow", protocol: "TCP", destination: { nets: ["2001:db8::1/128"], ports: [443] } }],
    });
  });

  test("is a policy that can be applied", () => {
    expect(globalNetworkPolicy.decode(policy)).toMatchObject({ ok: true });
  });

  test("does not depend on the order and number of the lines", () => {
    const again = draftPolicy([...packets.toReversed(), ...packets], { name: "hosts", selector: "role == 'edge'" });

    expect(again).toEqual(policy);
  });
});

describe("parseLogLine()", () => {
  test("takes only packets of the host itself that the temporary policy, or an earlier release, has logged", () => {
    expect(LOG.map((line) => parseLogLine(line) !== undefined)).toEqual([...Array(10).fill(true), false, false, false]);
  });
});
