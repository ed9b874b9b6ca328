/** The frame: names of the views, who is logged in, how it looks; below it one view, or the login. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { identity } from "../../identity.ts";
import { type Session, VIEWS, type View } from "../api/session.ts";
import { AddressesView } from "./addresses/addresses-view.tsx";
import { THEMES, type Theme, theme } from "./appearance.ts";
import { now } from "./clock.ts";
import { FlowsView } from "./flows/flows-view.tsx";
import { followHealth, forgetHealth, health } from "./health/follow-health.ts";
import { HealthView } from "./health/health-view.tsx";
import { KeysDialog } from "./keys-dialog.tsx";
import { Login } from "./login.tsx";
import { Brand } from "./parts/brand.tsx";
import { Icon, type IconName } from "./parts/icons.tsx";
import { useKeys } from "./parts/keys.ts";
import { go, hashOf, route } from "./route.ts";
import { isStarting, keepSession, logOut } from "./session.ts";
import { session } from "./session-state.ts";
import { ageWords } from "./words.ts";

export function App() {
  const { value } = session;
  if (isStarting.value) return <p class="loading starting">{identity.title} console</p>;
  return value === undefined ? <Login /> : <Frame session={value} />;
}

const TITLES: Readonly<Record<View, string>> = { health: "Health", flows: "Flows", addresses: "Addresses" };

function Frame({ session: reader }: { readonly session: Session }) {
  const { view } = route.value;
  const showsKeys = useSignal(false);
  useKeys({
    "1": () => go({ view: "health" }),
    "2": () => go({ view: "flows" }),
    "3": () => go({ view: "addresses" }),
    "?": () => {
      showsKeys.value = true;
    },
  });
  useEffect(() => {
    const end = new AbortController();
    void followHealth(end.signal);
    keepSession(end.signal);
    return () => {
      end.abort();
      // Another reader may see less of it.
      forgetHealth();
    };
  }, []);
  useEffect(() => {
    document.title = `${TITLES[view]} · ${identity.title} console`;
  }, [view]);
  return (
    <div class="frame">
      {/* Not a link: the fragment of the address is the view. */}
      <button type="button" class="skip" onClick={() => document.getElementById("view")?.focus()}>
        Skip to the view
      </button>
      <header class="bar">
        <span class="brand">
          <Brand />
          {identity.title}
        </span>
        <ViewNames view={view} />
        <div class="bar-end">
          <SessionEnd session={reader} />
          <button
            type="button"
            class="quiet icon-button wide-only"
            aria-label="Keys"
            title="Keys (?)"
            onClick={() => (showsKeys.value = true)}
          >
            <Icon name="keys" />
          </button>
          <ThemeButton />
          <span class="user" title={`Logged in as ${reader.user}`}>
            <span class="unseen">Logged in as </span>
            {reader.user}
          </span>
          <button type="button" class="quiet icon-button" aria-label="Log out" title="Log out" onClick={() => logOut()}>
            <Icon name="leave" />
          </button>
        </div>
      </header>
      <main class="view" id="view" tabIndex={-1}>
        <ViewOf view={view} />
      </main>
      {showsKeys.value && <KeysDialog close={() => (showsKeys.value = false)} />}
    </div>
  );
}

function ViewOf({ view }: { readonly view: View }) {
  switch (view) {
    case "health":
      return <HealthView />;
    case "flows":
      return <FlowsView />;
    case "addresses":
      return <AddressesView />;
  }
}

function ViewNames({ view }: { readonly view: View }) {
  const state = health.value?.state;
  return (
    <nav class="views" aria-label="Views">
      {VIEWS.map((each) => (
        <a key={each} href={hashOf({ view: each })} {...(each === view ? { "aria-current": "page" } : {})}>
          <Icon name={each} />
          {TITLES[each]}
          {each === "health" && (state === "failed" || state === "warning") && (
            <span class={`mark mark-${state}`}>
              <Icon name={state} />
              <span class="unseen">{state}</span>
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}

const NEAR_END = 5 * 60_000;

/** Only when it matters. */
function SessionEnd({ session: { expires } }: { readonly session: Session }) {
  const left = expires - now.value;
  if (left > NEAR_END) return null;
  return (
    <span class="mark mark-warning" role="status">
      <Icon name="warning" />
      The session ends in {ageWords(Math.max(0, left))}
    </span>
  );
}

const THEME_ICONS: Readonly<Record<Theme, IconName>> = { system: "screen", light: "sun", dark: "moon" };

function ThemeButton() {
  const { value } = theme;
  const next = THEMES[(THEMES.indexOf(value) + 1) % THEMES.length] ?? "system";
  return (
    <button
      type="button"
      class="quiet icon-button"
      aria-label={`Colours: ${value}. Change to ${next}`}
      title={`Colours: ${value}`}
      onClick={() => {
        theme.value = next;
      }}
    >
      <Icon name={THEME_ICONS[value]} />
    </button>
  );
}
