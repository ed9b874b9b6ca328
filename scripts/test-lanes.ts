/**
 * Which tests run at the same time: lanes of one round run in parallel, each in its
 * own process, and the rounds follow one another. System tests wait for other
 * programs more than half of their time, so three lanes use the two cores of a small
 * machine. Each lane takes about as long as the others.
 */
export interface Lane {
  readonly name: string;
  /** Paths below the repository, such as `test/kube/pods.test.ts`. */
  readonly files: readonly string[];
}

interface LanePlan {
  readonly name: string;
  /** A lane takes the files whose paths start with one of these, and "the rest" those that no other lane takes. */
  readonly takes: readonly string[] | "the rest";
}

/** Tests that measure rates come first, and alone. */
export const ROUNDS: readonly (readonly LanePlan[])[] = [
  [{ name: "measuring", takes: ["test/bandwidth/rates.test.ts"] }],
  [
    {
      name: "cluster",
      takes: ["test/kube/", "test/datastore/kube", "test/install/"],
    },
    {
      name: "packet",
      takes: [
        "test/agent/",
        "test/policy/",
        "test/clients/",
        "test/bandwidth/",
        "test/firewall/",
        "test/portmap/",
      ].concat(
        ["test/alp/", "test/sidecar/", "test/grpc/", "test/admin/alp", "test/upgrade/"],
        ["test/controllers/", "test/datastore/etcd", "test/routing/"],
      ),
    },
    { name: "host", takes: "the rest" },
  ],
];

/** Every file is in exactly one lane: the first that takes it. Lanes without files are left out. */
export function assignFiles(
  files: readonly string[],
  rounds: readonly (readonly LanePlan[])[] = ROUNDS,
): readonly (readonly Lane[])[] {
  const plans = rounds.flat();
  const takerOf = (file: string) =>
    plans.find(({ takes }) => takes !== "the rest" && takes.some((start) => file.startsWith(start))) ??
    plans.find(({ takes }) => takes === "the rest");
  const takers = new Map(files.toSorted().map((file) => [file, takerOf(file)]));
  const missing = [...takers].filter(([, plan]) => plan === undefined).map(([file]) => file);
  if (missing.length > 0) throw new Error(`Cannot run the tests: no lane takes ${missing.join(", ")}`);
  const filesOf = (plan: LanePlan) => [...takers].filter(([, taker]) => taker === plan).map(([file]) => file);
  return rounds.map((lanes) =>
    lanes.map((plan) => ({ name: plan.name, files: filesOf(plan) })).filter(({ files: own }) => own.length > 0),
  );
}
