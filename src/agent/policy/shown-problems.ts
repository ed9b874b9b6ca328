/** What is not enforced as its author wants it: in the log, once for each resource, and in a file for `node status`. */
import { POLICY_PROBLEMS_FILE, writeProblems } from "../../health/problems-file.ts";
import type { FileFolder } from "../../linux/file-folder.ts";
import { EFFECT, type PolicyProblem } from "../../policy/compile/policy-problems.ts";

export interface ShownProblemsMeans {
  readonly error: (message: string) => void;
  readonly warn: (message: string) => void;
  readonly folder: Pick<FileFolder, "path" | "write">;
}

export class ShownProblems {
  private logged: ReadonlySet<string> = new Set();
  private written: string | undefined;

  constructor(private readonly means: ShownProblemsMeans) {}

  /**
   * All there are now, and what may become one. One that was logged is logged again only after it was over: not with each
   * edit of its policy.
   */
  show(problems: readonly PolicyProblem[], warnings: readonly PolicyProblem[] = []): void {
    const isNew = (problem: PolicyProblem) => !this.logged.has(identityOf(problem));
    for (const problem of problems.filter(isNew)) this.means.error(describe(problem));
    for (const warning of warnings.filter(isNew)) this.means.warn(describe(warning));
    this.logged = new Set([...problems, ...warnings].map(identityOf));
    const text = writeProblems([...orderProblems(problems), ...warnings].map(describe));
    if (text === this.written) return;
    this.written = text;
    const { folder, warn } = this.means;
    try {
      folder.write(POLICY_PROBLEMS_FILE, text);
    } catch (failure) {
      warn(`Cannot write "${folder.path}/${POLICY_PROBLEMS_FILE}": ${failure}`);
    }
  }
}

/** These can open what their author closed. */
const OPENING: ReadonlySet<string> = new Set([EFFECT.kept, EFFECT.exempt]);

/**
 * Those that can open something first; of these and of the others first those of the cluster, then one of each namespace
 * after the other: those of one namespace cannot hide others.
 */
export function orderProblems(problems: readonly PolicyProblem[]): readonly PolicyProblem[] {
  const counts = new Map<string, number>();
  const ranked = problems.map((problem) => {
    const isOpening = OPENING.has(problem.effect);
    const [namespace, name] = problem.title.split("/");
    const group = `${isOpening} ${namespace}`;
    const rank = name === undefined ? 0 : (counts.get(group) ?? 0) + 1;
    counts.set(group, rank);
    return { problem, isOpening, rank };
  });
  return ranked
    .toSorted((left, right) => Number(right.isOpening) - Number(left.isOpening) || left.rank - right.rank)
    .map(({ problem }) => problem);
}

function identityOf({ title, effect }: PolicyProblem): string {
  return `${effect} ${title}`;
}

function describe({ title, effect, reason }: PolicyProblem): string {
  return `"${title}" ${effect}: ${reason}`;
}
