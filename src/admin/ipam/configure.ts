import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import {
  DEFAULT_IPAM_CONFIGURATION,
  type IPAMConfiguration,
  ipamConfiguration,
} from "../../model/ipam-configuration.ts";
import { IPAM_CONFIGURATION_KEY } from "../../model/keys.ts";
import { formatProblems } from "../../model/problem.ts";
import { quoted } from "../../quote.ts";
import { withNewDatastore } from "../datastore/open.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import { readOrExplain } from "../resources/unreadable-remedy.ts";

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  const asked = askedSettings(given);
  if (Object.keys(asked).length === 0) throw new UsageError("At least one setting is required; see --help");
  const spec = await withNewDatastore(context, given, (store) => configure(store, asked));
  if (wantsJson(given)) context.stdout(`${JSON.stringify(spec)}\n`);
  else for (const [name, value] of Object.entries(spec)) context.stdout(`${name}: ${value}\n`);
  return EXIT_OK;
}

type Settings = IPAMConfiguration["spec"];

function askedSettings({ values }: Given): Partial<Settings> {
  const [strict, other] = [values.get("strict-affinity") ?? values.get("strictaffinity"), values.get("strictaffinity")];
  if (other !== undefined && other !== strict) {
    throw new UsageError("--strict-affinity and --strictaffinity are the same setting, with different values");
  }
  const auto = values.get("auto-allocate-blocks");
  const most = values.get("max-blocks-per-host");
  const cooldown = values.get("cooldown-seconds");
  const longest = values.get("longest-keep-for");
  return {
    ...(strict === undefined ? {} : { strictAffinity: strict === "true" }),
    ...(auto === undefined ? {} : { autoAllocateBlocks: auto === "true" }),
    ...(most === undefined ? {} : { maxBlocksPerHost: requireWholeNumber("max-blocks-per-host", most) }),
    ...(cooldown === undefined ? {} : { cooldownSeconds: requireWholeNumber("cooldown-seconds", cooldown) }),
    ...(longest === undefined ? {} : { longestKeepFor: longest }),
  };
}

function requireWholeNumber(option: string, text: string): number {
  if (/^-?\d+$/.test(text)) return Number(text);
  throw new UsageError(`"--${option}" is ${quoted(text)}: must be a whole number`);
}

const ATTEMPTS = 5;

async function configure(store: Datastore, asked: Partial<Settings>): Promise<Settings> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const key = IPAM_CONFIGURATION_KEY;
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    const before = entry
      ? readOrExplain(entry, ({ value }) => ipamConfiguration.read(value, key))
      : DEFAULT_IPAM_CONFIGURATION;
    const decoded = ipamConfiguration.decode({ ...before, spec: { ...before.spec, ...asked } });
    if (!decoded.ok) {
      throw new PluginError("resource-invalid", `Cannot configure IPAM: ${formatProblems(decoded.problems)}`);
    }
    const value = ipamConfiguration.write(decoded.value, entry?.value);
    const written = await store.commit([
      entry ? { kind: "update", key, value, revision: entry.revision } : { kind: "create", key, value },
    ]);
    if (written.ok) return decoded.value.spec;
  }
  throw new PluginError("try-again-later", "Cannot configure IPAM: others keep changing the settings");
}
