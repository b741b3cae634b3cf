package page

// style is what the pages have beside the chat page's own style, in its colours.
const style = `body.jobs{height:auto;overflow:auto}
.jobs header{display:flex;gap:10px;padding:14px 24px;border-bottom:1px solid var(--line);background:var(--side)}
.jobs main{max-width:1200px;margin:0 auto;padding:24px}
.jobs a{color:var(--accent)}
.jobs h1{font-size:24px;margin-bottom:12px}
.jobs h2{font-size:17px;margin:20px 0 8px}
.jobs p{margin:8px 0}
.dim{color:var(--muted)}
.wide{overflow-x:auto}
.jobs table{width:100%;border-collapse:collapse;font-size:14px}
.jobs th,.jobs td{padding:8px 10px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.jobs th{color:var(--muted);font-weight:600}
.jobs code,.jobs pre{font-family:var(--mono);font-size:.9em}
.jobs pre{margin:0;padding:10px 12px;background:var(--sunk);border-radius:8px;white-space:pre-wrap;overflow-wrap:anywhere}
.badge{display:inline-block;padding:0 9px;border-radius:9px;background:var(--sunk);color:var(--muted);font-size:13px;font-weight:600;vertical-align:middle}
.badge.good{color:var(--good)}
.badge.bad{background:var(--bad-soft);color:var(--bad)}
p.bad,.trouble{padding:10px 14px;border-radius:10px;background:var(--bad-soft);color:var(--bad);overflow-wrap:anywhere}
.trouble{margin:12px 0}
.trouble h2{margin:0 0 4px}
.trouble a{color:inherit;font-weight:600}
.why{overflow-wrap:anywhere}
.acts{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin:14px 0}
.acts button{padding:7px 16px;border:1px solid var(--line);border-radius:10px;background:var(--raised)}
.acts button:hover{background:var(--sunk)}
.acts summary{cursor:pointer;color:var(--muted)}
.jobs dl{display:grid;grid-template-columns:max-content 1fr;gap:6px 18px;font-size:15px}
.jobs dt{color:var(--muted)}
.jobs dd{margin:0;min-width:0;overflow-wrap:anywhere}
.turn{margin:14px 0}
.output ul{list-style:disc;padding-left:24px}
.output ol{list-style:decimal;padding-left:24px}
@media (max-width:600px){.jobs dl{grid-template-columns:1fr}.jobs main{padding:16px}}
`
