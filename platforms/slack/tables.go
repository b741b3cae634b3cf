package slack

import (
	"regexp"
	"strings"
	"unicode/utf8"

	api "github.com/slack-go/slack"

	"herald/platforms/format"
)

// Limits of a table block, https://docs.slack.dev/reference/block-kit/blocks/table-block. Slack takes one table a
// message.
const (
	maxTableRows  = 100
	maxTableCols  = 20
	maxTableChars = 10000
)

// mdTable is a table of a Markdown text.
type mdTable struct {
	before, after string
	rows          [][]string
	align         []api.ColumnAlignment
}

// tableBlocks returns a text with its first table as a table block. nil when it has none, or one that is over a
// limit: then the text shows it in monospace.
func tableBlocks(markdown string) []api.Block {
	t, ok := findTable(markdown)
	if !ok || len(markdown) > maxBlockText || len(t.rows) > maxTableRows || len(t.align) > maxTableCols {
		return nil
	}
	table := &api.TableBlock{Type: api.MBTTable}
	chars := 0
	for _, row := range t.rows {
		cells := make([]api.TableCell, len(t.align))
		for i := range cells {
			text := " "
			if i < len(row) && strings.TrimSpace(row[i]) != "" {
				text = format.PlainText(row[i])
			}
			chars += utf8.RuneCountInString(text)
			cells[i] = api.NewTableRawTextCell(text)
		}
		table.Rows = append(table.Rows, cells)
	}
	if chars > maxTableChars {
		return nil
	}
	for _, align := range t.align {
		table.ColumnSettings = append(table.ColumnSettings, api.ColumnSetting{Align: align, IsWrapped: true})
	}
	var blocks []api.Block
	if strings.TrimSpace(t.before) != "" {
		blocks = append(blocks, sectionsOf(t.before)...)
	}
	blocks = append(blocks, table)
	if strings.TrimSpace(t.after) != "" {
		blocks = append(blocks, sectionsOf(t.after)...)
	}
	return blocks
}

func sectionsOf(markdown string) []api.Block {
	body := ""
	for _, t := range splitMarkdown(markdown) {
		body += t.Body
	}
	return sections(body, markdown)
}

var delimiterRow = regexp.MustCompile(`^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)

// findTable finds the first table outside of code.
func findTable(markdown string) (t mdTable, ok bool) {
	lines := strings.Split(markdown, "\n")
	fence := ""
	for i := 0; i+1 < len(lines); i++ {
		trimmed := strings.TrimSpace(lines[i])
		if mark := fenceMark(trimmed); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" || !strings.Contains(lines[i], "|") || !strings.Contains(lines[i+1], "|") || !delimiterRow.MatchString(lines[i+1]) {
			continue
		}
		head, marks := cells(lines[i]), cells(lines[i+1])
		if len(head) != len(marks) {
			continue
		}
		t.rows = append(t.rows, head)
		for _, m := range marks {
			t.align = append(t.align, alignment(strings.TrimSpace(m)))
		}
		end := i + 2
		for end < len(lines) && strings.Contains(lines[end], "|") && fenceMark(strings.TrimSpace(lines[end])) == "" {
			t.rows = append(t.rows, cells(lines[end]))
			end++
		}
		t.before, t.after = strings.Join(lines[:i], "\n"), strings.Join(lines[end:], "\n")
		return t, true
	}
	return t, false
}

// fenceMark returns the run of "`" or "~" that opens or closes a block of code.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if run := line[:len(line)-len(strings.TrimLeft(line, c))]; len(run) >= 3 {
			return run
		}
	}
	return ""
}

func alignment(mark string) api.ColumnAlignment {
	switch left, right := strings.HasPrefix(mark, ":"), strings.HasSuffix(mark, ":"); {
	case left && right:
		return api.ColumnAlignmentCenter
	case right:
		return api.ColumnAlignmentRight
	}
	return api.ColumnAlignmentLeft
}

// cells splits a row at its bars, but not at escaped ones.
func cells(row string) []string {
	row = strings.TrimSpace(row)
	row = strings.TrimPrefix(row, "|")
	if strings.HasSuffix(row, "|") && !strings.HasSuffix(row, `\|`) {
		row = row[:len(row)-1]
	}
	var out []string
	var cell strings.Builder
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case row[i] == '|':
			out = append(out, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(row[i])
		}
	}
	return append(out, strings.TrimSpace(cell.String()))
}
