/** As in the icon of the page. */
export function Brand() {
  return (
    <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M9 10.5 16 23l7-12.5" />
      <circle cx="9" cy="9.5" r="3" />
      <circle cx="23" cy="9.5" r="3" />
      <circle cx="16" cy="23" r="3" />
    </svg>
  );
}
