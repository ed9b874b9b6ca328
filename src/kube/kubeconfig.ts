/**
 * Decodes kubeconfig files and chooses the cluster and the user of the current context.
 * Pure: the texts are read elsewhere, and so are the files that they name.
 */
import { kubeconfigInvalid } from "./failure.ts";
import {
  clusterFrom,
  type Fields,
  type FileEntry,
  isFields,
  type KubeCluster,
  type KubeUser,
  textIn,
  userFrom,
} from "./kubeconfig-entries.ts";

export interface ChosenContext {
  readonly cluster: KubeCluster;
  readonly user: KubeUser;
  /** Where the user's credentials come from, for messages: the file and the name of the user. */
  readonly source: string;
}

interface Merged {
  readonly files: readonly string[];
  readonly currentContext: string | undefined;
  readonly contexts: ReadonlyMap<string, FileEntry>;
  readonly clusters: ReadonlyMap<string, FileEntry>;
  readonly users: ReadonlyMap<string, FileEntry>;
}

export interface KubeconfigText {
  readonly file: string;
  readonly text: string;
}

/**
 * Chooses a context of several files, the current one unless `wanted` names another. Of everything with the same name,
 * the first counts, as in kubectl.
 */
export function chooseContext(texts: readonly KubeconfigText[], wanted?: string): ChosenContext {
  const merged = merge(texts);
  const currentContext = wanted ?? merged.currentContext;
  const files = merged.files.map((file) => `"${file}"`).join(", ");
  if (currentContext === undefined) {
    throw kubeconfigInvalid(files, "it has no current context", `set "current-context" to ${namesOf(merged.contexts)}`);
  }
  const context = required(merged.contexts, {
    list: "contexts",
    name: currentContext,
    by: wanted === undefined ? "current-context" : "the chosen context",
    files,
  });
  const clusterName = textIn(context, "cluster", `context "${currentContext}"`);
  if (clusterName === undefined) throw kubeconfigInvalid(files, `context "${currentContext}" names no cluster`);
  const by = `context "${currentContext}"`;
  const cluster = required(merged.clusters, { list: "clusters", name: clusterName, by, files });
  const userName = textIn(context, "user", by);
  if (userName === undefined) return { cluster: clusterFrom(cluster, clusterName), user: {}, source: files };
  const user = required(merged.users, { list: "users", name: userName, by, files });
  return {
    cluster: clusterFrom(cluster, clusterName),
    user: userFrom(user, userName),
    source: `user "${userName}" of "${user.file}"`,
  };
}

function merge(texts: readonly KubeconfigText[]): Merged {
  let currentContext: string | undefined;
  const contexts = new Map<string, FileEntry>();
  const clusters = new Map<string, FileEntry>();
  const users = new Map<string, FileEntry>();
  for (const { file, text } of texts) {
    const fields = parse(text, file);
    currentContext ??= textIn({ fields, file }, "current-context", "it");
    addNamed(contexts, { fields, file }, "contexts", "context");
    addNamed(clusters, { fields, file }, "clusters", "cluster");
    addNamed(users, { fields, file }, "users", "user");
  }
  return { files: texts.map(({ file }) => file), currentContext, contexts, clusters, users };
}

function parse(text: string, file: string): Fields {
  let value: unknown;
  try {
    value = Bun.YAML.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^YAML Parse error: /, "") : "unknown error";
    throw kubeconfigInvalid(`"${file}"`, `it is not valid YAML: ${reason}`);
  }
  if (!isFields(value)) throw kubeconfigInvalid(`"${file}"`, "it does not contain an object");
  return value;
}

/** `clusters: [{ name: a, cluster: {…} }]`. */
function addNamed(target: Map<string, FileEntry>, { fields, file }: FileEntry, list: string, member: string): void {
  const members = fields[list];
  if (members === undefined || members === null) return;
  if (!Array.isArray(members)) throw kubeconfigInvalid(`"${file}"`, `"${list}" is not a list`);
  for (const [index, given] of members.entries()) {
    const entry: unknown = given;
    const name = isFields(entry) ? entry["name"] : undefined;
    if (!isFields(entry) || typeof name !== "string") {
      throw kubeconfigInvalid(`"${file}"`, `"${list}[${index}]" has no name`);
    }
    const inner = entry[member] ?? {};
    if (!isFields(inner)) throw kubeconfigInvalid(`"${file}"`, `"${list}[${index}].${member}" is not an object`);
    if (!target.has(name)) target.set(name, { fields: inner, file });
  }
}

function required(
  entries: ReadonlyMap<string, FileEntry>,
  {
    list,
    name,
    by,
    files,
  }: { readonly list: string; readonly name: string; readonly by: string; readonly files: string },
): FileEntry {
  const found = entries.get(name);
  if (found !== undefined) return found;
  throw kubeconfigInvalid(files, `${by} is or names "${name}", which is not in "${list}"`, `use ${namesOf(entries)}`);
}

function namesOf(entries: ReadonlyMap<string, unknown>): string {
  const names = [...entries.keys()].map((name) => `"${name}"`);
  return names.length === 0 ? "a name in the list, which is empty now" : `one of ${names.join(", ")}`;
}
