/**
 * A cluster as people run it: deployments that scale and roll, nodes that join and are drained, policies and pools that
 * change, a restart of the agents now and then. Faults come one at a time, and far apart.
 */
import { CONTROLLERS, NAMESPACES, type ScriptPod, type ScriptWriter } from "./script-writer.ts";

const SECOND = 1_000;

interface Deployment {
  readonly namespace: string;
  readonly app: string;
  pods: ScriptPod[];
}

export function writeRealistic(writer: ScriptWriter): void {
  const { random } = writer;
  for (const name of NAMESPACES) {
    writer.write({ kind: "apply namespace", name, labels: { team: random.pick(["one", "two"]) } });
  }
  writer.applyLastingPolicies();
  const deployments: Deployment[] = [
    { namespace: "red", app: "web", pods: [] },
    { namespace: "red", app: "db", pods: [] },
    { namespace: "blue", app: "cache", pods: [] },
  ];
  for (const deployment of deployments) scaleUp(writer, deployment, 1 + random.below(3));
  const phases = 4 + random.below(5);
  for (let phase = 0; phase < phases; phase++) {
    writer.pass(5 * SECOND, 60 * SECOND);
    const deployment = random.pick(deployments);
    deployment.pods = deployment.pods.filter((pod) => writer.pods.includes(pod));
    random.pick([
      () => scaleUp(writer, deployment, 1 + random.below(4)),
      () => scaleDown(writer, deployment, 1 + random.below(3)),
      () => roll(writer, deployment),
      () => writer.joinNode(),
      () => drain(writer),
      () => writer.applyPolicy(),
      () => writer.applyPolicy(),
      () => writer.deletePolicy(),
      () => changePools(writer, phase),
      () => changeLabels(writer),
      () => restartAgents(writer),
      () => writer.openConnection(),
      () => createAgain(writer),
      () => writer.useAddressAgain(deployment.namespace),
      () => {
        const [pod] = deployment.pods;
        if (pod !== undefined) writer.annotatePod(pod);
      },
      () => oneFault(writer),
    ])();
  }
}

function scaleUp(writer: ScriptWriter, deployment: Deployment, count: number): void {
  for (let each = 0; each < count; each++) {
    const pod = writer.createPod(deployment);
    if (pod !== undefined) deployment.pods.push(pod);
    writer.pass(0, 300);
  }
}

function scaleDown(writer: ScriptWriter, deployment: Deployment, count: number): void {
  for (const pod of deployment.pods.splice(0, count)) {
    writer.deletePod(pod);
    writer.pass(0, 300);
  }
}

/** One new pod, then one old one less, until all are new. */
function roll(writer: ScriptWriter, deployment: Deployment): void {
  const old = deployment.pods;
  deployment.pods = [];
  for (const pod of old) {
    scaleUp(writer, deployment, 1);
    writer.pass(SECOND, 5 * SECOND);
    writer.deletePod(pod);
  }
}

/** Pods whose addresses are kept, as a StatefulSet does when its template changes: the same names, on whatever nodes. */
function createAgain(writer: ScriptWriter): void {
  for (const pod of writer.pods.filter(({ keeps }) => keeps === true)) {
    writer.deletePod(pod);
    writer.pass(2 * SECOND, 10 * SECOND);
    const { namespace, name, keeps } = pod;
    writer.createPod({ namespace, name, keeps });
  }
}

function drain(writer: ScriptWriter): void {
  if (writer.nodes.size < 2) return;
  const node = writer.random.pick([...writer.nodes]);
  for (const pod of writer.pods.filter((each) => each.node === node)) {
    writer.deletePod(pod);
    writer.pass(100, SECOND);
  }
  writer.pass(10 * SECOND, 30 * SECOND);
  if (writer.random.chance(0.5)) writer.deleteNode(node);
}

function changePools(writer: ScriptWriter, phase: number): void {
  const { random, pools } = writer;
  const spare = [...pools.values()].find(({ name }) => name !== "pool-1");
  if (spare === undefined || random.chance(0.4)) {
    writer.addPool(phase);
  } else {
    writer.applyPool({ ...spare, disabled: spare.disabled !== true });
  }
}

function changeLabels(writer: ScriptWriter): void {
  const { random } = writer;
  if (writer.pods.length > 0 && random.chance(0.6)) {
    const { namespace, name } = random.pick(writer.pods);
    writer.write({ kind: "label pod", namespace, name, labels: { app: random.pick(["web", "db", "cache"]) } });
    return;
  }
  const labels = { team: random.pick(["one", "two"]) };
  writer.write({ kind: "apply namespace", name: random.pick(NAMESPACES), labels });
}

/** As a rolling upgrade of the agents does. */
function restartAgents(writer: ScriptWriter): void {
  for (const node of writer.nodes) {
    writer.write({ kind: "kill agent", node, afterEffects: 0, lasts: 3 * SECOND });
    writer.pass(5 * SECOND, 10 * SECOND);
  }
}

function oneFault(writer: ScriptWriter): void {
  const { random } = writer;
  const node = random.pick([...writer.nodes]);
  random.pick([
    () => writer.write({ kind: "restart datastore", lasts: 2 * SECOND + random.below(20 * SECOND) }),
    () => writer.write({ kind: "restart API", lasts: 2 * SECOND + random.below(20 * SECOND) }),
    () => writer.write({ kind: "cut", place: node, lasts: 5 * SECOND + random.below(60 * SECOND) }),
    () => writer.write({ kind: "compact datastore" }),
    () => writer.write({ kind: "reboot node", node, lasts: 20 * SECOND }),
    () => writer.write({ kind: "foreign change", node, what: "delete all routes", choice: 0 }),
    () =>
      writer.write({ kind: "kill controllers", place: random.pick(CONTROLLERS), afterEffects: 0, lasts: 10 * SECOND }),
  ])();
}
