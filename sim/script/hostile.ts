/** Everything at once, at the worst time: faults overlap with one another and with everything that users and runtimes do. */
import { FOREIGN_CHANGES } from "./operation.ts";
import { APPS, CONTROLLERS, NAMESPACES, type ScriptWriter } from "./script-writer.ts";

const SECOND = 1_000;
/** A watch of the API that hears nothing ends by itself within that time, and one of etcd is asked for sooner. */
const UNTIL_NOTICED = 110 * SECOND;
/** Than what looks unused is left alone before it is released: two minutes, in steps of one. */
const LONGER_THAN_GRACE = 220 * SECOND;

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
    if (random.chance(0.45)) writeFault(writer, count);
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
    ofPod((found) => writer.deletePod(found, "gracefully", random.pick([30 * SECOND, LONGER_THAN_GRACE]))),
    ofPod((found) => writer.loseMirror(found)),
    ofPod((found) => writer.annotatePod(found)),
    () => writer.useAddressAgain(random.pick(NAMESPACES)),
    () => writer.openConnection(),
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
    ofPod(({ namespace, name }) => writer.write({ kind: "repeat call", namespace, name, call: "CHECK" })),
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
      if (node !== undefined && writer.nodes.size > 1)
        writer.deleteNode(node, random.pick([0, 30 * SECOND, LONGER_THAN_GRACE]));
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

function writeFault(writer: ScriptWriter, count: number): void {
  const { random } = writer;
  if (writer.nodes.size === 0) return;
  random.pick([writeFaultOfServers, writeFaultOfWatches, writeFaultOfProcesses, writeFaultOfKernel])(writer, count);
}

function writeFaultOfServers(writer: ScriptWriter): void {
  const { random } = writer;
  const place = placeIn(writer);
  const lasts = random.pick([SECOND, 10 * SECOND, 60 * SECOND]);
  const outage = random.pick([100, 5 * SECOND, 30 * SECOND]);
  random.pick<() => void>([
    () =>
      writer.write({
        ...{ kind: "disturb requests", delay: random.pick([[0, 50] as const, [10, 2_000] as const]) },
        ...{ lostRequest: random.pick([0, 0.1, 0.3]), lostAnswer: random.pick([0, 0.1, 0.3]), lasts },
      }),
    () => writer.write({ kind: "late requests", probability: random.pick([0.1, 0.5]), lasts }),
    () => writer.write({ kind: "cut", place, lasts: random.pick([lasts, lasts, LONGER_THAN_GRACE]) }),
    () => writer.write({ kind: "restart datastore", lasts: outage }),
    () => writer.write({ kind: "restart API", lasts: outage }),
    () => writer.write({ kind: "hang datastore", lasts: outage }),
    () => writer.write({ kind: "hang API", lasts: outage }),
    () => writer.write({ kind: "busy API", lasts: outage }),
  ])();
}

/** They lag, break, are silent, or begin again where the server has no history any more. */
function writeFaultOfWatches(writer: ScriptWriter, count: number): void {
  const { random } = writer;
  const place = placeIn(writer);
  const lasts = random.pick([SECOND, 10 * SECOND, 60 * SECOND]);
  const compact = random.pick(["compact datastore", "compact API"] as const);
  random.pick<() => void>([
    () => writer.write({ kind: "stall watches", place, lasts }),
    () => writer.write({ kind: "break watches", place, lasts }),
    () => writer.write({ kind: "lose watches", place, lasts: UNTIL_NOTICED }),
    () => writer.write({ kind: "end watches", place, lasts }),
    // While watches of one place lag, its agent knows less than the others when the server starts again.
    () => {
      writer.write({ kind: "stall watches", place, lasts });
      writeDeed(writer, count);
      writer.pass(0, lasts / 2);
      writer.write({ kind: "restart API", lasts: random.pick([100, 5 * SECOND]) });
    },
    () => writer.write({ kind: compact }),
    // What was changed while they were away, nobody can tell them any more.
    () => {
      writer.write({ kind: "break watches", place, lasts });
      writer.pass(0, lasts / 2);
      writeDeed(writer, count);
      writer.pass(0, lasts / 4);
      writer.write({ kind: compact });
    },
  ])();
}

function writeFaultOfProcesses(writer: ScriptWriter): void {
  const { random } = writer;
  const node = random.pick([...writer.nodes]);
  const place = random.pick(CONTROLLERS);
  const effects = random.pick([0, random.below(40)]);
  // The lease of a leader ends after fifteen seconds.
  const frozen = random.pick([SECOND, 10 * SECOND, 40 * SECOND]);
  random.pick<() => void>([
    () => writer.write({ kind: "kill agent", node, afterEffects: effects, lasts: random.pick([0, 5 * SECOND]) }),
    () => writer.write({ kind: "kill call", node, afterEffects: random.below(40) }),
    () => writer.write({ kind: "kill call", node, afterEffects: random.below(40) }),
    () =>
      writer.write({
        ...{ kind: "kill controllers", place, afterEffects: random.below(10), lasts: random.pick([0, 20 * SECOND]) },
      }),
    () => writer.write({ kind: "freeze agent", node, lasts: frozen }),
    () => writer.write({ kind: "freeze controllers", place, lasts: frozen }),
    () => writer.write({ kind: "mislead controllers", place, lasts: LONGER_THAN_GRACE }),
    () => writer.write({ kind: "reboot node", node, lasts: random.pick([SECOND, 30 * SECOND]) }),
  ])();
}

function writeFaultOfKernel(writer: ScriptWriter): void {
  const { random } = writer;
  const node = random.pick([...writer.nodes]);
  const lasts = random.pick([SECOND, 10 * SECOND, 60 * SECOND]);
  random.pick<() => void>([
    () => writer.write({ kind: "lose kernel events", node, probability: random.pick([0.1, 1]), lasts }),
    () => writer.write({ kind: "refuse changes", node, probability: random.pick([0.05, 0.3]), lasts }),
    () => writer.write({ kind: "interrupt lists", node, probability: random.pick([0.2, 0.8]), lasts }),
    () =>
      writer.write({ kind: "foreign change", node, what: random.pick(FOREIGN_CHANGES), choice: random.below(1_000) }),
  ])();
}

function placeIn({ random, nodes }: ScriptWriter): string {
  return random.pick([...nodes, ...CONTROLLERS]);
}
