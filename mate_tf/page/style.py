"""How the page looks; fonts are the system's, so that nothing is fetched from elsewhere."""

STYLE = """
.gradio-container {
  --accent: #e8a317; --ink: #1c2530; --quiet: #5b6673; --line: #dfe3e8; --paper: #ffffff;
  --ground: #f6f7f9; --button: #1f4e79; --wrong: #a3201d;
  background: var(--ground) !important; color: var(--ink);
}
.dark .gradio-container, .gradio-container.dark {
  --accent: #b97f0c; --ink: #e8ebef; --quiet: #a3adb8; --line: #38424d; --paper: #1b222b;
  --ground: #12171d; --button: #2f6ea8; --wrong: #ff9d98;
}
.gradio-container main { box-sizing: border-box; max-width: 1240px !important; width: 100%;
  margin: 0 auto; padding: 24px 32px 48px !important; }
.gradio-container .fillable { max-width: none !important; padding: 0 !important; }
.gradio-container footer { display: none !important; }
.gradio-container .block { border-color: var(--line); border-radius: 8px; }
.gradio-container :focus-visible { outline: 3px solid var(--accent) !important;
  outline-offset: 2px; }
#title, #title > *, #result, #result > * { padding: 0 !important; overflow: visible; }
#title h1 { margin: 0; font-size: 26px; font-weight: 650; letter-spacing: -0.01em; }
#title p { margin: 2px 0 0; color: var(--quiet); font-size: 15px; }
#columns { gap: 28px; margin-top: 6px; }
#source, #asking { gap: 14px; }
#pasted textarea { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12.5px;
  white-space: pre; overflow-x: auto; }
#question input, #question textarea { font-size: 17px; }
#line { gap: 10px; align-items: flex-end; flex-wrap: nowrap; }
#ask { flex: 0 0 96px; min-width: 96px; height: 46px; border-radius: 8px; font-size: 16px;
  background: var(--button); color: #fff; border: 0; }
#ask:hover { filter: brightness(1.15); }
#result { color: var(--ink); font-size: 15px; line-height: 1.45; }
#result p { margin: 0; }
#result .answer { background: var(--paper); border: 1px solid var(--line); border-radius: 8px;
  border-left: 5px solid var(--accent); padding: 14px 18px; }
#result .answer .text { font-size: 27px; font-weight: 650; line-height: 1.25;
  overflow-wrap: anywhere; }
#result .answer .none { color: var(--quiet); }
#result .facts, #result .size, #result .legend, #result .guess { color: var(--quiet);
  font-size: 14px; }
#result .answer .facts { margin-top: 4px; }
#result .note { margin-top: 12px; overflow-wrap: anywhere; }
#result .others { margin: 14px 2px 0; }
#result h2 { margin: 0 0 2px; font-size: 14px; font-weight: 650; color: var(--ink); }
#result ol { margin: 0; padding-left: 22px; list-style: decimal; }
#result li { margin: 0; padding: 0; line-height: 1.45; overflow-wrap: anywhere; }
#result .other { margin-right: 8px; }
#result .error { background: var(--paper); border: 1px solid var(--wrong); color: var(--wrong);
  border-radius: 8px; padding: 12px 16px; margin-bottom: 14px; overflow-wrap: anywhere; }
#result .answer ~ .above { margin-top: 20px; }
#result .views { display: flex; flex-wrap: wrap; gap: 0 8px; margin-top: 20px; }
#result .views > input { position: absolute; opacity: 0; width: 1px; height: 1px; }
#result .views > label { order: 1; padding: 7px 16px; border: 1px solid var(--line);
  border-radius: 999px; background: var(--paper); cursor: pointer; font-size: 14px; }
#result .views > input:checked + label { background: var(--button); border-color: var(--button);
  color: #fff; font-weight: 600; }
#result .views > input:focus-visible + label { outline: 3px solid var(--accent);
  outline-offset: 2px; }
#result .view { order: 2; display: none; flex: 0 0 100%; min-width: 0; max-width: 100%;
  margin-top: 10px; }
#result .views > input:checked + label + .view { display: block; }
#result .above { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 24px;
  margin-bottom: 6px; }
#result .legend { color: var(--ink); }
#result .scroll { overflow-x: auto; max-width: 100%; border: 1px solid var(--line);
  border-radius: 8px; background: var(--paper); }
#result table { border-collapse: collapse; width: 100%; margin: 0; font-size: 14px; }
#result table, #result tr { border: 0; }
#result th, #result td { padding: 5px 11px; border: 0; border-bottom: 1px solid var(--line);
  text-align: left; vertical-align: top; min-width: 44px; max-width: 320px; line-height: 1.4;
  overflow-wrap: break-word; color: var(--ink); font-variant-numeric: tabular-nums;
  background: color-mix(in srgb, var(--accent) calc(var(--strength, 0) * 62%), var(--paper)); }
#result thead th { max-width: 140px; font-weight: 650; vertical-align: bottom;
  border-bottom: 2px solid var(--line); }
#result tbody th, #result thead th:first-child { color: var(--quiet); font-weight: 400;
  min-width: 0; }
#result tbody tr:last-child > * { border-bottom: 0; }
#result .chosen { font-weight: 650; box-shadow: inset 0 0 0 2px var(--accent); }
#result small { font-size: 12px; font-weight: 400; white-space: nowrap; margin-left: 4px;
  opacity: 0.85; }
#result .gap td { color: var(--quiet); font-style: italic; background: var(--ground);
  max-width: none; }
@media (max-width: 700px) {
  .gradio-container main { padding: 16px 14px 32px !important; }
  #title, #title > *, #result, #result > * { padding: 0 !important; overflow: visible; }
#title h1 { font-size: 22px; }
  #result .answer .text { font-size: 23px; }
  #result .views > label { padding: 7px 12px; }
}
"""
