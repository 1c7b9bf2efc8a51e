// The one place that knows the editor's library. It is loaded when somebody writes a query.
import { autocompletion, closeBrackets, completionKeymap, type CompletionContext } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useEffectEvent, useLayoutEffect, useRef } from 'react';

/** What may stand at the cursor, in place of what is written already. */
export interface Offers {
  begun: string;
  words: { text: string; kind: string; detail?: string }[];
}

/** Where a text is wrong: from 1, in characters. */
export interface Wrong {
  line: number;
  column: number;
  message: string;
}

const words = /^(?:and|or|not|in|is|null|from|true|false|group|order|by|limit|offset|asc|desc)\b/;

/** Colours only: what a query means the server says. */
const language = StreamLanguage.define({
  name: 'pql',
  token: (stream) => {
    if (stream.eatSpace()) return null;
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return 'string';
    if (stream.match(/^-?\d+(?:\.\d+)?/)) return 'number';
    if (stream.match(words)) return 'keyword';
    if (stream.match(/^[A-Za-z_]\w*(?=\s*[[{])/)) return 'typeName';
    if (stream.match(/^[A-Za-z_][\w.]*/)) return 'propertyName';
    if (stream.match(/^[=~!<>]+/)) return 'operator';
    stream.next();
    return null;
  },
});

const colours = HighlightStyle.define([
  { tag: tags.string, class: 'query-string' },
  { tag: tags.number, class: 'query-number' },
  { tag: tags.keyword, class: 'query-word' },
  { tag: tags.typeName, class: 'query-entity' },
  { tag: tags.propertyName, class: 'query-field' },
]);

/** Selects what a key is about to replace: the browser tells of keys before it tells what was selected. */
function selectAsInPage(view: EditorView, range: StaticRange | undefined) {
  if (!range) return;
  const anchor = view.posAtDOM(range.startContainer, range.startOffset);
  const head = view.posAtDOM(range.endContainer, range.endOffset);
  const { main } = view.state.selection;
  if (anchor !== main.from || head !== main.to) view.dispatch({ selection: { anchor, head } });
}

/** What is typed is put in as text: by itself the browser may keep the colours around it, in styles that the page's policy forbids. */
const plainly = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const text = event.data;
    if (event.inputType !== 'insertText' || text === null || view.composing) return false;
    event.preventDefault();
    selectAsInPage(view, event.getTargetRanges()[0]);
    const { main } = view.state.selection;
    const typed = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: 'input.type', scrollIntoView: true });
    // Others may have something to say of it: a bracket comes with its other half.
    const taken = view.state
      .facet(EditorView.inputHandler)
      .some((handle) => handle(view, main.from, main.to, text, typed));
    if (!taken) view.dispatch(typed());
    return true;
  },
});

/** Where a place is in a text; behind its end it is the end. */
function offsetOf(state: EditorState, { line, column }: Wrong): number {
  if (line < 1 || line > state.doc.lines) return state.doc.length;
  const row = state.doc.line(line);
  const before = [...row.text].slice(0, column - 1).join(''); // characters may be two units
  return Math.min(row.from + before.length, row.to);
}

/** An editor for a query. Ctrl+Enter asks; completion comes while one writes, and by Ctrl+Space. */
export default function QueryEditor(props: {
  label: string;
  value: string;
  set: (text: string) => void;
  ask: (text: string) => void;
  complete: (before: string, stop: AbortSignal) => Promise<Offers | undefined>;
  wrong?: Wrong;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const changed = useEffectEvent((text: string) => props.set(text));
  const asked = useEffectEvent((text: string) => props.ask(text));
  const offered = useEffectEvent(props.complete);
  const begin = useEffectEvent(() => ({ doc: props.value, label: props.label }));
  useEffect(() => {
    const { doc, label } = begin();
    const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.nonce ?? '';
    const source = async (context: CompletionContext) => {
      const before = context.state.sliceDoc(0, context.pos);
      const stop = new AbortController();
      context.addEventListener('abort', () => stop.abort());
      const offers = await offered(before, stop.signal);
      if (!offers || offers.words.length === 0 || stop.signal.aborted) return null;
      return {
        from: context.pos - offers.begun.length,
        options: offers.words.map((w) => ({ label: w.text, type: w.kind, detail: w.detail ?? w.kind })),
        filter: false,
      };
    };
    view.current = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc,
        extensions: [
          EditorView.cspNonce.of(nonce),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, 'data-filter': '', spellcheck: 'false' }),
          plainly,
          history(),
          closeBrackets(),
          bracketMatching(),
          language,
          syntaxHighlighting(colours),
          autocompletion({ override: [source], icons: false, maxRenderedOptions: 60 }),
          placeholder('nodes[certname, report_timestamp] { latest_report_status = "failed" }'),
          keymap.of([
            {
              key: 'Mod-Enter',
              // What stands here, not what the page knows by now: keys are quicker than it is drawn.
              run: ({ state }) => {
                asked(state.doc.toString());
                return true;
              },
            },
            // Tab leaves the editor: who uses keys alone must not be caught in it.
            ...completionKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed(update.state.doc.toString());
          }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);
  const { value, wrong } = props;
  // Before the next key: one that comes in between would be taken back.
  useLayoutEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    if (!wrong) {
      editor.dispatch(setDiagnostics(editor.state, []));
      return;
    }
    const from = offsetOf(editor.state, wrong);
    const to = Math.max(from, editor.state.doc.lineAt(from).to);
    const word = /^[\w.]+/.exec(editor.state.sliceDoc(from, to))?.[0].length ?? 1;
    editor.dispatch(
      setDiagnostics(editor.state, [
        { from, to: Math.min(from + word, editor.state.doc.length), severity: 'error', message: wrong.message },
      ]),
    );
  }, [wrong]);
  return <div ref={place} className="query-editor" />;
}
