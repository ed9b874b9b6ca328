/** The agent of today speaks with the sidecars of all releases: see recorded/README.md. */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { conversationSteps } from "../../../test/support/conversation-cluster.ts";
import { FedPods } from "../../../test/support/fed-pods.ts";
import { TestSidecar } from "../../../test/support/test-sidecar.ts";
import { VERSION } from "../../version.ts";
import { RequestJudge } from "../judge/request-judge.ts";
import { decodeFromAgent } from "../protocol/decode-message.ts";
import { type FromAgent, type FromSidecar, SIDECAR_PROTOCOL } from "../protocol/sidecar-state.ts";

const DIRECTORY = join(import.meta.dir, "recorded");
const OWN_FILE = join(DIRECTORY, `${VERSION}.txt`);

interface Conversation {
  readonly sidecar: readonly FromSidecar[];
  readonly agent: readonly FromAgent[];
}

test("this release has a recorded conversation, and still says the same", async () => {
  const lines: string[] = [];
  const conversation = await converse([{ type: "hello", protocol: SIDECAR_PROTOCOL, version: VERSION }]);
  const [welcome, ...updates] = conversation.agent;
  lines.push(`sidecar ${JSON.stringify(conversation.sidecar[0])}`, `agent ${JSON.stringify(welcome)}`);
  for (const [index, update] of updates.entries()) {
    lines.push(`agent ${JSON.stringify(update)}`, `sidecar ${JSON.stringify(conversation.sidecar[index + 1])}`);
  }
  const text = `${lines.join("\n")}\n`;
  if (process.env["RECORD_CONVERSATION"]) writeFileSync(OWN_FILE, text);
  if (!existsSync(OWN_FILE)) throw new Error(`There is no conversation of ${VERSION}: see recorded/README.md`);
  expect(readFileSync(OWN_FILE, "utf8")).toBe(text);
});

const files = readdirSync(DIRECTORY).filter((name) => name.endsWith(".txt"));

test.each(files)("the agent speaks with the sidecar of %s, without a field that it does not know", async (file) => {
  const recorded = readConversation(file);
  const now = await converse(recorded.sidecar);
  expect(now.agent.map(({ type }) => type)).toEqual(recorded.agent.map(({ type }) => type));
  const known = fieldsOf(recorded.agent);
  expect([...fieldsOf(now.agent)].filter((field) => !known.has(field))).toEqual([]);
});

test.each(files)("the sidecar understands the agent of %s", (file) => {
  const judge = new RequestJudge("cluster.local");
  for (const line of readConversation(file).agent) {
    const decoded = decodeFromAgent(JSON.stringify(line));
    if (decoded.type === "update") judge.apply(decoded);
  }
  expect(judge.revision).toBe(conversationSteps().length);
});

/** The sidecar says these lines, each when the agent waits for it; absent acknowledgements are made up. */
async function converse(said: readonly FromSidecar[]): Promise<Conversation> {
  const [hello, ...acknowledgements] = said;
  if (hello === undefined) throw new Error("no greeting");
  const [first, ...later] = conversationSteps();
  const pods = new FedPods();
  try {
    if (first !== undefined) pods.change(first);
    const sidecar = await TestSidecar.connect(pods.addPod(0));
    sidecar.say(hello);
    const spoken: FromSidecar[] = [hello];
    for (const [index, step] of [...later, undefined].entries()) {
      await sidecar.hears(index + 2);
      const applied = acknowledgements[index] ?? { type: "applied" as const, revision: index + 1 };
      sidecar.say(applied);
      spoken.push(applied);
      if (step === undefined) break;
      pods.change(step);
    }
    return { sidecar: spoken, agent: sidecar.received };
  } finally {
    await pods.close();
  }
}

function readConversation(file: string): Conversation {
  const lines = readFileSync(join(DIRECTORY, file), "utf8").trimEnd().split("\n");
  const of = (who: string) =>
    lines.filter((line) => line.startsWith(`${who} `)).map((line) => JSON.parse(line.slice(who.length + 1)));
  return { sidecar: of("sidecar"), agent: of("agent") };
}

/** Policies and sets are in maps, whose keys are not fields. */
const MAPS: ReadonlySet<string> = new Set(["update.policies", "update.sets"]);

/** The path of every field, with the type of its value: `update.policies.*.rules.*.action string`. */
function fieldsOf(lines: readonly FromAgent[]): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) {
      found.add(`${path} ${value === null ? "null" : typeof value}`);
      return;
    }
    for (const [name, each] of Object.entries(value)) {
      visit(each, `${path}.${Array.isArray(value) || MAPS.has(path) ? "*" : name}`);
    }
  };
  for (const line of lines) visit(line, line.type);
  return found;
}
