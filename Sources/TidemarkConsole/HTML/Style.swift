/// The console's style sheet and its icon.
enum Style {
    /// Two tides.
    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5cad"/>
        <path d="M5 14q5.500-6 11 0t11 0M5 22q5.500-6 11 0t11 0" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>
        """

    static let sheet = """
        :root {
          color-scheme: light dark;
          --ground: #f6f7f9; --card: #ffffff; --line: #d5d9e0; --strong-line: #767d8a; --text: #1b1f27; --quiet: #59606d;
          --accent: #0b5cad; --accent-text: #ffffff; --accent-ground: #e5effa;
          --good: #17683a; --good-ground: #e4f4ea; --warning: #7a4b00; --warning-ground: #fdf1d8; --error: #a3141c; --error-ground: #fdeaea;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ground: #14171c; --card: #1c2027; --line: #343a45; --strong-line: #8b93a1; --text: #e8eaee; --quiet: #a8afbb;
            --accent: #7ab8f5; --accent-text: #0d1b2a; --accent-ground: #1d2f44;
            --good: #86d7a4; --good-ground: #16301f; --warning: #f0c674; --warning-ground: #35290f; --error: #ff9d9d; --error-ground: #3a1a1c;
          }
        }
        * { box-sizing: border-box }
        html { -webkit-text-size-adjust: 100% }
        body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground) }
        a { color: var(--accent) }
        :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
        main:focus { outline: none }
        :is(input, select, textarea):focus-visible { outline-offset: -1px }
        h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere }
        h2 { font-size: 1.125rem; line-height: 1.25; margin: 0 0 .75rem; overflow-wrap: anywhere }
        p { margin: 0 0 .75rem }
        code, pre, .mono { font: .875rem/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
        .option { white-space: nowrap }
        .parts { overflow-wrap: break-word }
        tr:has(:target) { background: var(--ground) }
        pre.link, pre.secret { white-space: pre-wrap; overflow-wrap: anywhere }
        pre { margin: 0 0 .75rem; padding: .75rem; background: var(--ground); border: 1px solid var(--line); border-radius: .375rem; overflow-x: auto; overflow-wrap: normal }
        .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
        .skip { position: absolute; left: -999rem; padding: .5rem 1rem; background: var(--card) }
        .skip:focus { left: .5rem; top: .5rem; z-index: 1 }
        .top { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .625rem 1rem; background: var(--card); border-bottom: 1px solid var(--line) }
        .brand { font-weight: 650; font-size: 1.125rem; color: var(--text); text-decoration: none }
        .chooser { display: flex; flex-wrap: wrap; gap: .375rem; align-items: center; min-width: 0 }
        .chooser select { width: auto; max-width: 24rem }
        .person { display: flex; gap: .75rem; align-items: center; margin-left: auto; min-width: 0 }
        .person .email { color: var(--quiet); font-size: .875rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
        .frame { display: grid; grid-template-columns: 12rem minmax(0, 1fr); max-width: 90rem }
        nav ul { list-style: none; margin: 0; padding: 1rem .5rem }
        nav a { display: block; padding: .5rem .75rem; border-radius: .375rem; color: var(--text); text-decoration: none }
        nav a:hover { background: var(--card) }
        nav a[aria-current] { background: var(--accent-ground); color: var(--accent); font-weight: 600 }
        main { padding: 1.25rem 1.5rem 3rem; min-width: 0 }
        .narrow { max-width: 26rem; margin: 8vh auto 0; padding: 1.5rem }
        .narrow form { margin: 0 0 1rem }
        .single { max-width: 64rem; margin: 0 auto }
        .single > h2 { margin-top: 1.5rem }
        .single form .field { max-width: 40rem }
        .card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 0 0 1rem }
        .card > :last-child { margin-bottom: 0 }
        .tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .75rem; margin: 0 0 1rem; padding: 0 }
        .tiles div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem }
        .tiles dt { color: var(--quiet); font-size: .875rem }
        .tiles dd { margin: 0; font-size: 1.375rem; font-variant-numeric: tabular-nums }
        .facts { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); gap: .375rem 1rem; margin: 0 }
        .facts dt { color: var(--quiet) }
        .facts dd { margin: 0; overflow-wrap: anywhere }
        .scroll { position: relative; container-type: inline-size; overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; margin: 0 0 1rem }
        table { border-collapse: collapse; width: 100%; font-size: .9375rem }
        th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line) }
        th { color: var(--quiet); font-weight: 600; font-size: .8125rem; white-space: nowrap }
        th.number { text-align: right }
        td { min-width: 6.5rem; max-width: 22rem; overflow-wrap: anywhere }
        td:last-child:has(button) { position: sticky; right: 0; background: var(--card) }
        td .wide { min-width: 18rem }
        td .long { min-width: 12rem; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden }
        td pre { white-space: pre-wrap; overflow-wrap: anywhere }
        tbody tr:last-child td { border-bottom: 0 }
        td time { white-space: nowrap }
        .stacked { table-layout: fixed }
        .stacked .wide { width: 40% }
        .stacked td { max-width: none; overflow-wrap: anywhere }
        .stacked time { white-space: normal }
        .stacked td > p:last-child { margin-bottom: 0 }
        .number { text-align: right; font-variant-numeric: tabular-nums }
        .thumb { display: block; width: 3rem; height: 3rem; object-fit: cover; border-radius: .25rem; background: var(--ground); font-size: .75rem; color: var(--quiet) }
        .preview { display: block; max-width: 100%; max-height: 20rem; border-radius: .375rem; background: var(--ground) }
        .notice { border: 1px solid; border-left-width: .375rem; border-radius: .375rem; padding: .75rem 1rem; margin: 0 0 1rem; overflow-wrap: anywhere }
        .notice > :last-child { margin-bottom: 0 }
        .info { color: var(--accent); background: var(--accent-ground) }
        .good { color: var(--good); background: var(--good-ground) }
        .warning { color: var(--warning); background: var(--warning-ground) }
        .error { color: var(--error); background: var(--error-ground) }
        .tag { display: inline-block; padding: 0 .5rem; border-radius: 1rem; background: var(--accent-ground); color: var(--accent); font-size: .8125rem; white-space: nowrap }
        .quiet-text { color: var(--quiet) }
        .empty { color: var(--quiet); text-align: center; padding: 1.5rem }
        label { display: block }
        .field { margin: 0 0 .875rem }
        .field > label, .name { font-size: .875rem; font-weight: 600 }
        .field > label { margin-bottom: .25rem }
        .hint { color: var(--quiet); font-size: .8125rem; font-weight: 400 }
        input, select, textarea, button { font: inherit; color: inherit }
        input:not([type=checkbox]), select, textarea { width: 100%; min-height: 2.5rem; padding: .375rem .625rem; background: var(--card); border: 1px solid var(--strong-line); border-radius: .375rem }
        textarea { min-height: 4.5rem; resize: vertical; display: block }
        input[type=checkbox] { width: 1.125rem; height: 1.125rem; accent-color: var(--accent); vertical-align: -.125rem; margin-right: .25rem }
        .choice { display: inline-block; margin: 0 1rem .5rem 0; white-space: nowrap }
        .row .choice, .field > .choice { margin-right: 0; white-space: normal }
        button, .button { display: inline-block; min-height: 2.5rem; padding: .4375rem 1rem; border: 1px solid var(--accent); border-radius: .375rem; background: var(--accent); color: var(--accent-text); font-weight: 600; cursor: pointer; text-decoration: none; max-width: 100%; overflow-wrap: break-word }
        :is(td, .top) :is(button, .button) { white-space: nowrap }
        .quiet, .button.quiet { background: transparent; color: var(--accent); border-color: var(--strong-line); font-weight: 500 }
        .danger { background: transparent; border-color: var(--error); color: var(--error) }
        .row { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .625rem; align-items: end; margin: 0 0 .875rem }
        .actions { display: flex; flex-wrap: wrap; gap: .625rem; align-items: center; margin: 0 0 1rem }
        .actions form { margin: 0 }
        fieldset { border: 0; padding: 0; margin: 0; min-width: 0 }
        legend { font-size: .875rem; font-weight: 600; padding: 0; margin: 0 0 .375rem }
        details { margin: 0 0 1rem }
        summary { cursor: pointer; color: var(--accent); padding: .375rem 0 }
        svg.bar { display: block; width: 100%; height: .5rem; border-radius: .25rem; background: var(--line) }
        svg.bar rect { fill: var(--accent) }
        svg.symbol { display: block; max-width: 100%; height: auto; margin: 0 0 .75rem }
        .plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .75rem; margin: 0 0 .75rem }
        .plot { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem }
        .plot figcaption { font-size: .875rem; font-weight: 600; margin: 0 0 .5rem }
        .plot svg { display: block; width: 100%; height: 6rem }
        .plot line { stroke: var(--strong-line); stroke-width: 1; vector-effect: non-scaling-stroke }
        .plot .bar { fill: var(--accent) }
        .plot .part { fill: var(--error) }
        .plot p { margin: .375rem 0 0 }
        .spans a { display: inline-block; padding: .25rem .5rem; border-radius: .375rem }
        .spans a[aria-current] { background: var(--accent-ground); font-weight: 600; text-decoration: none }
        @media (max-width: 48rem) {
          .frame { display: block }
          nav ul { display: flex; flex-wrap: wrap; gap: .25rem; padding: .5rem }
          nav a { padding: .5rem .625rem }
          main { padding: 1rem 1rem 3rem }
          .person { margin-left: 0; width: 100%; justify-content: space-between }
          .chooser { width: 100% }
          .chooser label { flex: 1 1 7rem; min-width: 0 }
          .chooser label:first-child { flex-basis: 100% }
          .chooser select { width: 100%; max-width: none }
        }
        @container (max-width: 44rem) {
          table, tbody, tr, td { display: block }
          thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
          tr { padding: .5rem .75rem; border-bottom: 1px solid var(--line) }
          tbody tr:last-child { border-bottom: 0 }
          td { position: relative; min-width: 0; max-width: none; min-height: 1.5rem; padding: .125rem 0; border: 0; text-align: left }
          td.number { text-align: left }
          td[data-column] { padding-left: 8rem }
          td[data-column]::before { content: attr(data-column); position: absolute; left: 0; width: 7.5rem; color: var(--quiet); font-size: .8125rem; line-height: 1.625rem; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
          td:empty { display: none }
          td:last-child:has(button) { position: relative }
          td .wide, td .long { min-width: 0 }
          td:not([data-column]):has(button) { padding: .5rem 0 .25rem }
        }
        @media (prefers-reduced-motion: no-preference) { button, .button, nav a { transition: background-color .12s } }
        """
}
