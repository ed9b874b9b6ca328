/** What the pods of the imitated shop say to each other: as their agents would record it, with the verdicts of its policies. */
import type { FlowEnd, FlowRecord } from "../../src/flows/flow-record.ts";
import { PODS, type ShopPod } from "./imitated-shop.ts";
import { seededRandom } from "./random-flows.ts";

interface Talk {
  readonly from: string;
  readonly to: string;
  readonly port: number;
  /** The comment of the rule that decides about it at the destination. */
  readonly rule: string;
  readonly isDenied?: true;
  /** How often, in comparison with the others. */
  readonly share: number;
  readonly bytes: number;
}

const OUTSIDE = "203.0.113.77";
const EVERYBODY = "profile ingress";

const TALKS: readonly Talk[] = [
  { from: "outside", to: "shop/web", port: 8080, rule: EVERYBODY, share: 20, bytes: 48_000 },
  { from: "shop/web", to: "shop/cart", port: 8080, rule: EVERYBODY, share: 24, bytes: 9_000 },
  { from: "shop/web", to: "shop/checkout", port: 8080, rule: EVERYBODY, share: 12, bytes: 12_000 },
  { from: "shop/cart", to: "shop/db", port: 5432, rule: "shop/db ingress 0", share: 22, bytes: 30_000 },
  { from: "shop/checkout", to: "shop/db", port: 5432, rule: "shop/db ingress 0", share: 10, bytes: 21_000 },
  {
    from: "shop/checkout",
    to: "payments/gateway",
    port: 8443,
    rule: "payments/gateway ingress 0",
    share: 9,
    bytes: 4_000,
  },
  {
    from: "payments/gateway",
    to: "payments/ledger",
    port: 9000,
    rule: "payments/ledger ingress 0",
    share: 8,
    bytes: 2_500,
  },
  { from: "monitoring/prometheus", to: "shop/web", port: 9100, rule: EVERYBODY, share: 6, bytes: 150_000 },
  {
    from: "monitoring/grafana",
    to: "shop/db",
    port: 5432,
    rule: "shop/db ingress 1",
    isDenied: true,
    share: 5,
    bytes: 0,
  },
  {
    from: "shop/web",
    to: "payments/ledger",
    port: 9000,
    rule: "tier default ingress default",
    isDenied: true,
    share: 3,
    bytes: 0,
  },
  { from: "outside", to: "shop/db", port: 5432, rule: "shop/db ingress 1", isDenied: true, share: 2, bytes: 0 },
];

const SHARES = TALKS.reduce((sum, { share }) => sum + share, 0);

export interface ShopTraffic {
  /** The next connection, at this time in milliseconds since 1970. */
  next(now: number): FlowRecord;
}

export function shopTraffic(seed = 1): ShopTraffic {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  let count = 0;
  const end = (title: string): FlowEnd => {
    if (title === "outside") return { kind: "outside", address: OUTSIDE };
    const pods = PODS.filter(({ namespace, app }) => `${namespace}/${app}` === title);
    const pod = pods[below(pods.length)];
    if (pod === undefined) throw new Error(`The shop has no ${title}`);
    return endOf(pod);
  };
  const talk = (): Talk => {
    let left = random() * SHARES;
    for (const each of TALKS) {
      left -= each.share;
      if (left < 0) return each;
    }
    throw new Error("Nobody talks");
  };
  return {
    next(now) {
      const { from, to, port, rule, isDenied, bytes } = talk();
      const [source, destination] = [end(from), end(to)];
      count += 1;
      const length = isDenied ? 0 : 1 + below(20);
      const node = destination.node ?? "";
      const isLocal = source.node === node;
      return {
        ...{ id: `${node}-${seed.toString(36)}${count.toString(36)}`, node, family: 4, protocol: 6 },
        source: { ...source, port: 32_768 + below(28_000) },
        destination: { ...destination, port },
        direction: isLocal && !isDenied ? "both" : "ingress",
        verdict: isDenied ? "denied" : "allowed",
        decisions: [
          ...(isLocal && source.kind === "pod"
            ? [{ point: "workload egress", verdict: "allow", rule: "profile egress" } as const]
            : []),
          { point: "workload ingress", verdict: isDenied ? "deny" : "allow", rule },
        ],
        ...{ state: isDenied ? "denied" : "ended", start: now - 200 * length, end: now },
        sent: { packets: isDenied ? 1 + below(3) : 4 + length, bytes: isDenied ? 60 : 600 + below(900) },
        received: isDenied ? { packets: 0, bytes: 0 } : { packets: 3 + length, bytes: below(2 * bytes) + 200 },
        ...(isDenied && count % 3 === 0 ? { suppressed: 1 + below(9) } : {}),
      };
    },
  };
}

function endOf({ namespace, app, name, owner, node, address }: ShopPod): FlowEnd {
  return { kind: "pod", address, namespace, name, owner, labels: { app }, node };
}
