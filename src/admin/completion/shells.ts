/** The shells that have a completion script, and the hidden command that the scripts call. */
export const COMPLETION_SHELLS = ["bash", "zsh", "fish"] as const;
export type CompletionShell = (typeof COMPLETION_SHELLS)[number];

export function isCompletionShell(text: string): text is CompletionShell {
  return COMPLETION_SHELLS.some((shell) => shell === text);
}

export const NAMES_COMMAND = "complete-names";
