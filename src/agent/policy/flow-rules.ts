/**
 * What the part of the agent that observes flows must know of the policy table: which number in the label of a connection
 * stands for which rule, and how many packets the rules have dropped.
 *
 *   rule of the table with a new comment ──▶ number, kept on disk ──▶ `added` ──▶ kernel
 *   whole look at the connection table ──▶ `noteUse` ──▶ numbers of rules that are gone ──▶ `removed`
 */
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";

/** The number, from 1, and the comment of the rule (src/policy/table/rule-comment.ts reads it). */
export type NumberedRule = readonly [number: number, comment: string];

export interface FlowRules {
  /** Of this node, as of the last change of the configuration. */
  readonly settings: NodeAgentSettings;
  /** Every number that a connection may have in its label, also of rules that are gone. */
  rules(): readonly NumberedRule[];
  /** Until the function that is returned is called. */
  follow(listener: FlowRuleListener): () => void;
  /** A whole look at the connection table that began then, in milliseconds since 1970, found these numbers. */
  noteUse(since: number, numbers: readonly number[]): void;
  /**
   * How many packets the rules of each comment have dropped since the agent began, or before it. Not read again as long as
   * reading takes more than a small share of the time.
   */
  denied(): readonly (readonly [comment: string, packets: number])[];
}

export interface FlowRuleListener {
  /** Before a rule with the number is in the kernel. */
  added(rules: readonly NumberedRule[]): void;
  /** They stand for nothing any more, until they are added again. */
  removed(numbers: readonly number[]): void;
  /** The settings have changed: flows may be switched on or off now. */
  settingsChanged(): void;
}
