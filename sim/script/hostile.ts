/** Everything at once, at the worst time: faults overlap with one another and with everything that users and runtimes do. */
import { FOREIGN_CHANGES } from "./operation.ts";
import { APPS, CONTROLLERS, NAMESPACES, type ScriptWriter } from "./script-writer.ts";

const SECOND = 1_000;

export function writeHostile(writer: ScriptWriter): void {
  const { random } = writer;
  for (const name of NAMESPACES) writer.write({ kind: "apply namespace", name, labels: { team: "one" } });
  writer.applyLastingPolicies();
  for (let count = 0; count < 5; count++) writer.createPod();
  const operations = 20 + random.below(25);
  // Slow scripts leave time to recover in between, fast ones do not.
  const pace = random.pick([200, SECOND, 5 * SECOND, 20 * SECOND]);
  for (let count = 0; count < operations; count++) {
    if (!random.chance(0.2)) writer.pass(0, pace);
    if (random.chance(0.45)) writeFault(writer);
    else writeDeed(writer, count);
  }
}

function writeDeed(writer: ScriptWriter, count: number): void {
  const { random, pods } = writer;
  const pod = pods.length === 0 ? undefined : random.pick(pods);
  const node = writer.nodes.size === 0 ? undefined : random.pick([...writer.nodes]);
  const ofPod = (deed: (found: NonNullable<typeof pod>) => void) => () =>
    pod === undefined ? void writer.createPod() : deed(pod);
  const how = random.pick(["gracefully", "by force", "without DEL"] as const);
  random.pick<() => void>([
    () => void writer.createPod(),
    () => void writer.createPod(),
    () => void writer.createPod(),
    ofPod((found) => writer.deletePod(found, how)),
    ofPod((found) => writer.deletePod(found, "gracefully")),
    // The same name with a new UID, often on another node.
    ofPod((found) => {
      writer.deletePod(found, how);
      if (random.chance(0.5)) writer.pass(0, SECOND);
      writer.createPod({ ...found, app: random.pick(APPS) });
    }),
    ofPod(({ namespace, name }) => writer.write({ kind: "lose sandbox", namespace, name })),
    ofPod(({ namespace, name }) =>
      writer.write({ kind: "repeat call", namespace, name, call: random.pick(["ADD", "DEL", "CHECK"]) }),
    ),
    ofPod(({ namespace, name }) =>
      writer.write({ kind: "label pod", namespace, name, labels: { app: random.pick(APPS) } }),
    ),
    () => writer.applyPolicy(),
    () => writer.applyPolicy(),
    () => writer.deletePolicy(),
    () =>
      writer.write({
        ...{ kind: "apply namespace", name: random.pick(NAMESPACES) },
        labels: { team: random.pick(["one", "two"]) },
      }),
    () => hostilePool(writer, count),
    () => writer.joinNode(),
    () => {
      if (node !== undefined && writer.nodes.size > 1) writer.deleteNode(node);
    },
    () => {
      if (node !== undefined) writer.write({ kind: "collect garbage", node });
    },
  ])();
}

/** Pools are deleted while they are in use, too. */
function hostilePool(writer: ScriptWriter, count: number): void {
  const { random, pools } = writer;
  const others = [...pools.values()].filter(({ name }) => name !== "pool-1");
  if (others.length === 0) {
    writer.addPool(count);
    return;
  }
  const pool = random.pick([...pools.values()]);
  if (random.chance(0.5)) writer.applyPool({ ...pool, disabled: pool.disabled !== true });
  else writer.deletePool(random.pick(others).name);
}

function writeFault(writer: ScriptWriter): void {
  const { random } = writer;
  if (writer.nodes.size === 0) return;
  const node = random.pick([...writer.nodes]);
  const place = random.pick([...writer.nodes, ...CONTROLLERS]);
  const lasts = random.pick([SECOND, 10 * SECOND, 60 * SECOND]);
  random.pick<() => void>([
    () =>
      writer.write({
        ...{ kind: "disturb requests", delay: random.pick([[0, 50] as const, [10, 2_000] as const]) },
        ...{ lostRequest: random.pick([0, 0.1, 0.3]), lostAnswer: random.pick([0, 0.1, 0.3]), lasts },
      }),
    () => writer.write({ kind: "cut", place, lasts }),
    () => writer.write({ kind: "restart datastore", lasts: random.pick([100, 5 * SECOND, 30 * SECOND]) }),
    () => writer.write({ kind: "restart API", lasts: random.pick([100, 5 * SECOND, 30 * SECOND]) }),
    () => writer.write({ kind: "compact datastore" }),
    () => writer.write({ kind: "compact API" }),
    () => writer.write({ kind: "stall watches", place, lasts }),
    () =>
      writer.write({ kind: "kill agent", node, afterEffects: random.below(40), lasts: random.pick([0, 5 * SECOND]) }),
    () => writer.write({ kind: "kill call", node, afterEffects: random.below(40) }),
    () => writer.write({ kind: "kill call", node, afterEffects: random.below(40) }),
    () =>
      writer.write({
        ...{ kind: "kill controllers", place: random.pick(CONTROLLERS), afterEffects: random.below(10) },
        lasts: random.pick([0, 20 * SECOND]),
      }),
    () => writer.write({ kind: "reboot node", node, lasts: random.pick([SECOND, 30 * SECOND]) }),
    () => writer.write({ kind: "lose kernel events", node, probability: random.pick([0.1, 1]), lasts }),
    () =>
      writer.write({ kind: "foreign change", node, what: random.pick(FOREIGN_CHANGES), choice: random.below(1_000) }),
  ])();
}
