// Package format turns the Markdown that the agent writes into what each chat platform shows, and cuts it
// into messages that fit.
//
// There is one way through it for every dialect: goldmark's tree becomes a flat document of lines (parse.go,
// table.go), the one splitter chooses where to cut (split.go), and a pen writes any range of the document in a
// notation (pen.go and one file for each notation). A cut is made between words of the document, never in
// written markup, so every chunk opens and closes its own tags, fences and styles.
//
// It promises: each chunk is within the limit in the platform's own unit; nothing visible is lost at a cut;
// no grapheme is cut unless it alone is over the limit; the work grows linearly with the input; the same input
// gives the same output. It knows no platform's network, no session and no configuration, and it keeps no
// state: every function is safe for concurrent use.
package format
