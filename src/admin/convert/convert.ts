import { findInstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { findKind } from "../../model/kinds.ts";
import { convertPolicy, NOT_CONVERTED_ANNOTATION, ORCHESTRATOR_POLICY } from "../../model/orchestrator-policy.ts";
import { formatProblem } from "../../model/problem.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { formatYaml } from "../../yaml.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { Call, Files, Terminal } from "../main/context.ts";
import { type GivenDocument, readGivenDocuments } from "../manifest/sources.ts";
import { paintStderr } from "../terminal/paint.ts";
import { convertOtherGroup, type Fields, otherGroupOf } from "./other-group.ts";

export async function run(context: Call & Terminal & Files, given: Given): Promise<ExitCode> {
  const documents = await readGivenDocuments(context, given);
  const converted = documents.map((document) => ({ place: document.place, ...convert(document) }));
  const problems = converted.flatMap(({ place, problems: own }) => own.map((problem) => `${place}: ${problem}`));
  if (problems.length > 0 && !given.switches.has("ignore-validation")) {
    throw new PluginError("resource-invalid", `Cannot convert the given resources:\n  ${problems.join("\n  ")}`, {
      details: "correct them, or use --ignore-validation",
    });
  }
  const { yellow } = paintStderr(context);
  const notes = converted.flatMap(({ place, notes: own }) => own.map((note) => `${place}: ${note}`));
  if (documents.some(isOrchestratorPolicy) && (await hasContainersOnly(context))) notes.push(PODS_ONLY);
  for (const note of [...problems, ...notes]) context.stderr(`${yellow("warning:")} ${note}\n`);
  if (converted.length > 0)
    context.stdout(
      print(
        converted.map(({ resource }) => resource),
        given,
      ),
    );
  return EXIT_OK;
}

interface ConvertedDocument {
  readonly resource: Fields;
  readonly problems: readonly string[];
  /** What the result does not contain, without being an error. */
  readonly notes: readonly string[];
}

const POLICY_VERSIONS: ReadonlySet<unknown> = new Set(["networking.k8s.io/v1", "extensions/v1beta1"]);

function convert({ value }: GivenDocument): ConvertedDocument {
  if (!isObject(value)) return { resource: {}, problems: ["it is not an object"], notes: [] };
  if (isOrchestratorPolicy({ value })) return convertOrchestratorPolicy(value);
  const group = otherGroupOf(value);
  if (group !== undefined) {
    const resource = convertOtherGroup(value, group);
    return { resource, problems: validate(resource), notes: [] };
  }
  return { resource: value, problems: validate(value), notes: [] };
}

function isOrchestratorPolicy({ value }: Pick<GivenDocument, "value">): boolean {
  return isObject(value) && POLICY_VERSIONS.has(value["apiVersion"]) && value["kind"] === "NetworkPolicy";
}

/** Whether the network of this host has containers and no pods; a host without one may be anybody's. */
async function hasContainersOnly(context: Call & Files): Promise<boolean> {
  const installed = await findInstalledNetwork(context).catch(() => undefined);
  return installed !== undefined && kubeAccess(installed.decoded.config) === undefined;
}

const PODS_ONLY =
  "a converted NetworkPolicy selects only pods of Kubernetes, and this host's network has none: " +
  `to select containers, remove "${identity.labelPrefix}orchestrator == 'k8s'" from its selectors`;

function convertOrchestratorPolicy(value: Fields): ConvertedDocument {
  const metadata = isObject(value["metadata"]) ? value["metadata"] : {};
  const [name, namespace] = [String(metadata["name"] ?? ""), String(metadata["namespace"] ?? "default")];
  const policy = convertPolicy({ metadata: { name, namespace }, spec: value["spec"] });
  const { [NOT_CONVERTED_ANNOTATION]: lost } = policy.metadata.annotations ?? {};
  // Converted policies of the API have the prefix: a resource with it would not be used.
  const resource = { ...policy, metadata: { name: policy.metadata.name.slice(ORCHESTRATOR_POLICY.length), namespace } };
  return { resource, problems: validate(resource), notes: lost === undefined ? [] : [lost] };
}

function validate(resource: Fields): readonly string[] {
  const kind = findKind(ADMIN_KINDS, String(resource["kind"] ?? ""));
  if (kind === undefined) {
    return [`kind: ${quoted(resource["kind"])} of ${quoted(resource["apiVersion"])} cannot be converted; see --help`];
  }
  const decoded = kind.codec.decode(resource);
  return decoded.ok ? [] : decoded.problems.map(formatProblem);
}

function print(resources: readonly Fields[], given: Given): string {
  const [only, ...others] = resources;
  const document = others.length === 0 ? only : { apiVersion: "v1", kind: "List", items: resources };
  if (given.values.get("output") === "json") return `${JSON.stringify(document, undefined, 2)}\n`;
  return formatYaml(document);
}
