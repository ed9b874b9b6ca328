/** Types the commands of a page of `docs/` on a host, so that the page stays true. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Host, RunOptions } from "./host.ts";

export interface DocsPage {
  /** Runs the commands of a section; all must succeed. Returns what they print, on stdout and stderr. */
  type(title: string, where: TypingPlace): Promise<string>;
  /** The sections whose commands were not run. */
  untried(): readonly string[];
}

interface TypingPlace extends Pick<RunOptions, "environment"> {
  readonly host: Host;
  /** What the reader writes instead of an example in the page. */
  readonly replacing?: Readonly<Record<string, string>>;
}

const LIMIT_MILLISECONDS = 200_000;

/** `without`: commands that download or build something. */
export function openDocsPage(file: string, { without }: { readonly without?: RegExp } = {}): DocsPage {
  const sections = commandsOfPage(file, { without });
  const typed = new Set<string>();
  return {
    type(title, { host, replacing = {}, environment = {} }) {
      typed.add(title);
      const commands = sections.get(title);
      if (commands === undefined) throw new Error(`docs/${file} has no section "${title}"`);
      const script = replaceEach(commands, replacing);
      const command = ["bash", "-eo", "pipefail", "-c", `exec 2>&1; cd ${host.directory}\n${script}`];
      return host.must(command, { environment, limitMilliseconds: LIMIT_MILLISECONDS });
    },
    untried: () => [...sections].flatMap(([title, script]) => (script.trim() === "" || typed.has(title) ? [] : title)),
  };
}

/** At once: what replaces one example may look like another. */
function replaceEach(text: string, replacing: Readonly<Record<string, string>>): string {
  const examples = Object.keys(replacing).map((example) => RegExp.escape(example));
  if (examples.length === 0) return text;
  return text.replaceAll(new RegExp(examples.join("|"), "g"), (example) => replacing[example] ?? example);
}

/** The commands of a page, by the title of their section. */
export function commandsOfPage(
  file: string,
  { without }: { readonly without?: RegExp | undefined } = {},
): ReadonlyMap<string, string> {
  const sections = blocksOfPage(file, "sh").map(([title, blocks]) => {
    const all = blocks.join("");
    return [title, without === undefined ? all : all.replaceAll(without, "")] as const;
  });
  return new Map(sections);
}

/** The YAML documents of a page, by the title of their section; sections without any are left out. */
export function documentsOfPage(file: string): ReadonlyMap<string, string> {
  const sections = blocksOfPage(file, "yaml").filter(([, blocks]) => blocks.length > 0);
  return new Map(sections.map(([title, blocks]) => [title, blocks.join("---\n")]));
}

/** The blocks of a language below each heading, in their order. */
function blocksOfPage(
  file: string,
  language: string,
): readonly (readonly [title: string, blocks: readonly string[]])[] {
  const page = readFileSync(join(import.meta.dir, "../../docs", file), "utf8");
  const fence = new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\`$`, "gm");
  return page
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const blocks = [...section.matchAll(fence)].map(([, indent = "", text = ""]) =>
        text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      );
      return [section.slice(0, section.indexOf("\n")), blocks];
    });
}
