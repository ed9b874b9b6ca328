/** What a view says in place of data: it is on its way, there is none, it could not be had, some of it is hidden. */
import type { ComponentChildren } from "preact";
import type { Refusal } from "../ask.ts";
import { now } from "../clock.ts";
import type { Following } from "../keep-following.ts";
import { Command } from "./command.tsx";
import { Icon, type IconName } from "./icons.tsx";

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  /** What to do. */
  readonly children?: ComponentChildren;
  readonly command?: string | undefined;
}

export function Empty({ icon, title, children, command }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      <div class="empty-words">{children}</div>
      {command !== undefined && <Command text={command} />}
    </div>
  );
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="loading" role="status">
      <Icon name="running" />
      Asking for {what}
    </p>
  );
}

/** In the words of who refused: in a cluster often the API server. */
export function Refused({ refusal, what }: { readonly refusal: Refusal; readonly what: string }) {
  return (
    <div class="notice notice-failed" role="alert">
      <Icon name="failed" />
      <div>
        <p>
          <strong>Cannot show {what}:</strong> {refusal.message}
        </p>
        {refusal.remedy !== undefined && <p class="muted">{refusal.remedy}</p>}
      </div>
    </div>
  );
}

/** Above what is still shown although nothing new comes. */
export function Lost({ following, since }: { readonly following: Following; readonly since?: string | undefined }) {
  if (following.kind !== "lost") return null;
  const { refusal, retryAt } = following;
  const seconds = Math.max(0, Math.ceil((retryAt - now.value) / 1_000));
  return (
    <div class="notice notice-warning">
      <Icon name="warning" />
      <div>
        <p role="alert">
          <strong>{refusal.message}</strong>
          {since === undefined ? "" : ` What is shown is ${since} old.`}
        </p>
        <p class="muted">
          {refusal.remedy === undefined ? "" : `${refusal.remedy}. `}
          {seconds === 0 ? "Asking again now" : `Asking again in ${seconds} s`}
        </p>
      </div>
    </div>
  );
}

export function Hidden({ what }: { readonly what: readonly string[] }) {
  if (what.length === 0) return null;
  return (
    <p class="notice notice-plain">
      <Icon name="hidden" />
      <span>
        Not shown and not counted, since you may not list them: <strong>{what.join(", ")}</strong>
      </span>
    </p>
  );
}
