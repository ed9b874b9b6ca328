import { PluginError } from "../../errors.ts";
import { detectFacts } from "../../upgrade/detect/detect.ts";
import type { Facts } from "../../upgrade/engine/facts.ts";
import { adviceOf, isUnfinished } from "../../upgrade/engine/ledger.ts";
import { type EarlierRun, makePlan } from "../../upgrade/engine/make-plan.ts";
import { planText } from "../../upgrade/engine/plan-text.ts";
import { readPlan } from "../../upgrade/engine/run.ts";
import { encodePlan, type UpgradePlan } from "../../upgrade/engine/upgrade-plan.ts";
import { STEPS } from "../../upgrade/steps.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Terminal } from "../main/context.ts";
import { paint } from "../terminal/paint.ts";
import { detectionRequest, upgradeOptions } from "./given-options.ts";
import { isBlocked, nextCommand } from "./next-command.ts";
import { DEFAULT_PLAN_FILE } from "./options.ts";
import { tellLock, type UpgradeSite, withUpgradeSite } from "./site.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const file = given.values.get("plan") ?? DEFAULT_PLAN_FILE;
  const plan = await withUpgradeSite(context, given, (site) => planOf(site, context, given));
  await context.replacePrivateFile(file, encodePlan(plan));
  if (wantsJson(given)) context.stdout(encodePlan(plan));
  else context.stdout(`${textOf(plan, context, given)}${nextCommand(plan, file)}`);
  return isBlocked(plan) ? EXIT_FAILED : EXIT_OK;
}

async function planOf(site: UpgradeSite, context: Call & Terminal & Clock, given: Given): Promise<UpgradePlan> {
  tellLock(context, site);
  const earlier = await earlierRun(site);
  const facts = earlier?.plan.facts ?? (await requireFacts(site, context, given));
  const options = upgradeOptions(given);
  const onStep = ({ name }: { readonly name: string }) => {
    if (context.showsProgress) context.stderr(`\r\u001b[KPlanning ${name}`);
  };
  try {
    const run = context.uuid().slice(0, 8);
    const request = { steps: STEPS, run, now: context.now(), onStep, ...(earlier === undefined ? {} : { earlier }) };
    const { objects, release, signal } = site;
    const openDatastore = () => site.openDatastore(facts.datastore);
    return await makePlan({ objects, release, signal, openDatastore, facts, options }, request);
  } finally {
    if (context.showsProgress) context.stderr("\r\u001b[K");
  }
}

/** A run that has begun: its facts are those of the cluster before it. */
async function earlierRun(site: UpgradeSite): Promise<EarlierRun | undefined> {
  const ledger = site.ledger.current;
  if (ledger === undefined || !isUnfinished(ledger)) return undefined;
  if (ledger.phase === "rolling-back") {
    throw new PluginError("resource-in-use", `Cannot plan an upgrade: upgrade ${ledger.run} is being rolled back`, {
      details: adviceOf(ledger),
    });
  }
  return { ledger, plan: await readPlan(site.backups(ledger.run), ledger) };
}

async function requireFacts(site: UpgradeSite, context: Call, given: Given): Promise<Facts> {
  const detection = await detectFacts(
    site.objects,
    detectionRequest(given, context.version, () => site.openDatastore("etcd")),
  );
  if (detection.kind === "found") return detection.facts;
  const messages = detection.obstacles.map(({ message }) => message).join("; ");
  throw new PluginError("config-invalid", `Cannot plan an upgrade: ${messages}`, {
    details: detection.obstacles.map(({ remedy }) => remedy).join("; "),
  });
}

function textOf(plan: UpgradePlan, context: Call & Terminal, given: Given): string {
  return planText(plan, STEPS, { ...paint(context), isFull: given.switches.has("full") });
}
