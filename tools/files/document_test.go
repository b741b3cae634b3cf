package files

import (
	"archive/zip"
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func packed(t testing.TB, parts map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range parts {
		w, err := z.Create(name)
		require.NoError(t, err)
		_, err = w.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

func wordParts() map[string]string {
	return map[string]string{"word/document.xml": `<?xml version="1.0"?><w:document xmlns:w="x"><w:body>
<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Title</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">Hello </w:t></w:r><w:r><w:t>&lt;world&gt;</w:t><w:tab/><w:t>x</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
</w:body></w:document>`}
}

func sheetParts() map[string]string {
	return map[string]string{
		"xl/workbook.xml":            `<workbook xmlns:r="r"><sheets><sheet name="Money" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/sharedStrings.xml":       `<sst><si><t>Name</t></si><si><r><t>Su</t></r><r><t>m</t></r></si></sst>`,
		"xl/worksheets/sheet1.xml": `<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>Ann</t></is></c><c r="B2"><f>1+1</f><v>2</v></c><c r="C2" t="b"><v>1</v></c><c r="D2" t="s"><v>99</v></c></row></sheetData></worksheet>`,
	}
}

const notebook = `{"cells":[{"cell_type":"markdown","source":["# Hi\n","there"]},{"cell_type":"code","source":"1+1","outputs":[{"output_type":"execute_result","data":{"text/plain":["2"]}},{"text":"printed\n"},{"ename":"E","evalue":"v"}]}]}`

func TestReadFile_Documents(t *testing.T) {
	b := newBench(t, nil)
	b.put("a.docx", string(packed(t, wordParts())))
	b.put("b.xlsx", string(packed(t, sheetParts())))
	b.put("c.ipynb", notebook)
	a := b.do("read_file", obj{"path": "a.docx"})
	require.Equal(t, "docx", a.Format)
	require.Equal(t, "1|# Title\n2|Hello <world>\tx\n3|a \tb \t", a.Content)
	require.Equal(t, "1|## Sheet: Money\n2|Name\t\tSum\n3|Ann\t2\tTRUE\t\n4|", b.do("read_file", obj{"path": "b.xlsx"}).Content)
	require.Equal(t, "1|# %% [markdown] cell 1\n2|# Hi\n3|there\n4|\n5|# %% [code] cell 2\n6|1+1\n7|# output:\n8|2\n9|# output:\n10|printed\n11|# output:\n12|E: v\n13|",
		b.do("read_file", obj{"path": "c.ipynb"}).Content)
	require.Equal(t, "2|Hello <world>\tx", b.do("read_file", obj{"path": "a.docx", "offset": 2, "limit": 1}).Content)

	b.put("bad.docx", "not a zip")
	b.refuse("can't be read as docx", "read_file", obj{"path": "bad.docx"})
	b.put("none.docx", string(packed(t, map[string]string{"x": ""})))
	b.refuse("no part word/document.xml", "read_file", obj{"path": "none.docx"})
	b.put("bad.ipynb", "{")
	b.refuse("can't be read as ipynb", "read_file", obj{"path": "bad.ipynb"})
}

// A file that unpacks to very much gives bounded text.
func TestDocument_Bomb(t *testing.T) {
	small := func(parts map[string]string, format string) (string, error) {
		return (&extracted{ctx: t.Context(), maxEntry: 1 << 20, maxText: 10_000}).document(packed(t, parts), format)
	}
	text, err := small(map[string]string{"word/document.xml": "<d><p><t>" + strings.Repeat("A", 2<<20) + "</t></p></d>"}, "docx")
	require.NoError(t, err)
	require.Contains(t, text, "the rest of the document was left out")
	text, err = small(map[string]string{"word/document.xml": "<d>" + strings.Repeat("<p><t>AAAAAAAAAA</t></p>", 10_000) + "</d>"}, "docx")
	require.NoError(t, err)
	require.Contains(t, text, "the rest of the document was left out")
	require.Less(t, len(text), 10_100)
	wide := sheetParts()
	wide["xl/worksheets/sheet1.xml"] = `<s><row><c r="XFD1"><v>1</v></c><c r="ZZZZZZZZZZZZZZ1"><v>2</v></c></row></s>`
	text, err = small(wide, "xlsx")
	require.NoError(t, err)
	require.Less(t, len(text), 5000)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = documentText(ctx, packed(t, wordParts()), "docx")
	require.ErrorIs(t, err, context.Canceled)
}

func FuzzDocx(f *testing.F) {
	f.Add(packed(f, wordParts()), "docx")
	f.Add(packed(f, sheetParts()), "xlsx")
	f.Add([]byte(notebook), "ipynb")
	f.Add([]byte(wordParts()["word/document.xml"]), "raw-docx")
	f.Add([]byte(sheetParts()["xl/worksheets/sheet1.xml"]), "raw-xlsx")
	f.Fuzz(func(t *testing.T, b []byte, format string) {
		// The packing hides the XML from mutations, so two of the formats get it unpacked.
		switch format {
		case "raw-docx":
			b, format = packed(t, map[string]string{"word/document.xml": string(b)}), "docx"
		case "raw-xlsx":
			p := sheetParts()
			p["xl/worksheets/sheet1.xml"], p["xl/sharedStrings.xml"] = string(b), string(b)
			b, format = packed(t, p), "xlsx"
		}
		text, err := documentText(t.Context(), b, format)
		if err == nil && (!utf8.ValidString(text) || len(text) > maxExtracted*3+100) {
			t.Fatalf("%d bytes of text, valid: %v", len(text), utf8.ValidString(text))
		}
	})
}
