/** Asks for a token. It goes to the server of the console once, and is neither stored nor shown here. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { identity } from "../../identity.ts";
import { Refusal } from "./ask.ts";
import { Brand } from "./parts/brand.tsx";
import { Command } from "./parts/command.tsx";
import { Icon } from "./parts/icons.tsx";
import { logIn } from "./session.ts";
import { loginMode, loginNotice } from "./session-state.ts";

export function Login() {
  const notice = loginNotice.value;
  useEffect(() => {
    document.title = `Log in · ${identity.title} console`;
  }, []);
  return (
    <main class="login">
      <div class="login-card">
        <h1 class="brand">
          <Brand />
          {identity.title} console
        </h1>
        {notice !== undefined && (
          <div class={`notice ${notice.isExpiry ? "notice-warning" : "notice-plain"}`} role="status">
            <Icon name={notice.isExpiry ? "warning" : "ok"} />
            <div>
              <p>{notice.message}</p>
              {notice.remedy !== undefined && <p class="muted">{notice.remedy}</p>}
              {notice.isExpiry && <p class="muted">After the login you see the same view again.</p>}
            </div>
          </div>
        )}
        <LoginForm isHost={loginMode.value === "host"} />
      </div>
    </main>
  );
}

function LoginForm({ isHost }: { readonly isHost: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  const failure = useSignal<Refusal | undefined>(undefined);
  const isBusy = useSignal(false);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? "";
    if (token === "") {
      failure.value = new Refusal(0, "The token is missing", "Paste it into the field");
      return;
    }
    isBusy.value = true;
    await logIn(token).catch((error: unknown) => {
      failure.value = error instanceof Refusal ? error : new Refusal(0, String(error));
      field.current?.select();
    });
    isBusy.value = false;
  };
  const { value: failed } = failure;
  return (
    <form onSubmit={submit} noValidate>
      <label for="token">{isHost ? "One-time token" : "Kubernetes token"}</label>
      <input
        id="token"
        ref={field}
        type="password"
        autocomplete="off"
        spellcheck={false}
        aria-describedby={failed === undefined ? "token-words" : "token-failure token-words"}
        {...(failed === undefined ? {} : { "aria-invalid": true })}
      />
      {failed !== undefined && (
        <div class="field-failure" id="token-failure" role="alert">
          <Icon name="failed" />
          <div>
            {failed.message}
            {failed.remedy !== undefined && <p class="muted">{failed.remedy}</p>}
          </div>
        </div>
      )}
      <button type="submit" class="primary" disabled={isBusy.value}>
        {isBusy.value ? "Logging in" : "Log in"}
      </button>
      <TokenWords isHost={isHost} />
    </form>
  );
}

function TokenWords({ isHost }: { readonly isHost: boolean }) {
  if (isHost)
    return (
      <div class="token-words muted" id="token-words">
        <p>A token is for one login. Open the address that this command prints:</p>
        <Command text={`${identity.adminTool} console`} />
      </div>
    );
  return (
    <div class="token-words muted" id="token-words">
      <p>You see what this token may list, and nothing else. To get one:</p>
      <Command text="kubectl create token NAME --namespace NAMESPACE" />
      <p>It is sent to the API server of this cluster only, and forgotten when you log out.</p>
    </div>
  );
}
