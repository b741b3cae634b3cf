package teamstest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func consentCardOf(name string, size int) map[string]any {
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": consentCard, "name": name, "content": map[string]any{"sizeInBytes": size, "acceptContext": map[string]any{"k": 1}},
	}}}
}

func TestFiles_ConsentAndUpload(t *testing.T) {
	s := newStage(t, Options{})
	body := bytes.Repeat([]byte("0123456789abcdef"), 30<<10) // 480 KiB, two fragments
	card := s.send(s.chat.ID, consentCardOf("a b.bin", len(body)))
	require.Equal(t, 201, card.status, "%s", card.body)
	_, err := s.AnswerConsent(s.chat.ID, card.ID, true)
	require.NoError(t, err)
	_, err = s.AnswerConsent(s.chat.ID, card.ID, true)
	require.Error(t, err, "a card is answered once")
	a := s.next()
	require.Equal(t, "fileConsent/invoke", a["name"])
	value := a["value"].(map[string]any)
	require.Equal(t, map[string]any{"k": 1.0}, value["context"])
	info := value["uploadInfo"].(map[string]any)
	put := func(from, to int, more http.Header) reply {
		h := http.Header{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(body))}}
		for k, v := range more {
			h[k] = v
		}
		return s.do("PUT", info["uploadUrl"].(string), body[from:to], "", h)
	}
	const part = 320 << 10
	require.Equal(t, 416, put(part, len(body), nil).status, "not the first")
	require.Equal(t, 400, put(0, 1000, nil).status, "no multiple of 320 KiB")
	require.Equal(t, 401, put(0, part, http.Header{"Authorization": {"Bearer " + s.token}}).status)
	require.Len(t, s.Leaks(), 1)
	require.Equal(t, 202, put(0, part, nil).status)
	require.Equal(t, 201, put(part, len(body), nil).status)
	require.Equal(t, 404, put(0, part, nil).status, "the session is over")
	r := s.send(s.chat.ID, map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": fileInfoCard, "contentUrl": info["contentUrl"], "name": info["name"], "content": map[string]any{"uniqueId": info["uniqueId"], "fileType": "bin"},
	}}})
	require.Equal(t, 201, r.status, "%s", r.body)
	require.Equal(t, body, s.Visible(s.chat.ID)[1].Files[0].Body)
	group := s.Group("Group", s.u)
	require.Equal(t, 400, s.send(group.ID, consentCardOf("x", 1)).status, "only in personal chats")
}

func TestFiles_PicturesAndDownloads(t *testing.T) {
	s := newStage(t, Options{})
	s.Write(Post{Room: s.chat.ID, Text: "look", Files: []File{
		{Name: "notes.txt", MIME: "text/plain", Body: []byte("notes")}, {Name: "a.png", MIME: "image/png", Body: []byte("pixels"), Inline: true},
	}})
	list := s.next()["attachments"].([]any)
	require.Len(t, list, 3)
	file := list[0].(map[string]any)
	require.Equal(t, downloadInfo, file["contentType"])
	at := file["content"].(map[string]any)["downloadUrl"].(string)
	require.Equal(t, "notes", string(s.do("GET", at, nil, "", nil).body))
	require.Equal(t, 401, s.do("GET", strings.Split(at, "?")[0], nil, "", nil).status)
	require.Equal(t, 401, s.do("GET", file["contentUrl"].(string), nil, "", nil).status, "that one is for people")
	picture := list[1].(map[string]any)
	require.Equal(t, "image/*", picture["contentType"])
	require.Equal(t, 401, s.do("GET", picture["contentUrl"].(string), nil, "", nil).status)
	r := s.do("GET", picture["contentUrl"].(string), nil, s.token, nil)
	require.Equal(t, "pixels", string(r.body))
	require.Equal(t, "image/png", r.header.Get("Content-Type"))
	require.Equal(t, 200, s.do("GET", strings.TrimSuffix(picture["contentUrl"].(string), "/views/original"), nil, s.token, nil).status)
	png := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("mine"))
	mine := map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "image/png", "contentUrl": png, "name": "b.png"}}}
	r = s.send(s.chat.ID, mine)
	require.Equal(t, 201, r.status, "%s", r.body)
	mine["text"] = "two messages"
	require.Equal(t, 202, s.send(s.chat.ID, mine).status)
	require.Len(t, s.Visible(s.chat.ID), 3)
	require.Equal(t, []File{{Name: "b.png", MIME: "image/png", Body: []byte("mine"), Inline: true}}, s.Visible(s.chat.ID)[0].Files)
}

// In groups and channels a file is a reference that only Graph resolves.
func TestGraph_Files(t *testing.T) {
	s := newStage(t, Options{})
	team := s.Team("Crew", s.u)
	group := s.Group("Group", s.u)
	_, raw := s.fetchToken(s.Secret(), graphScope)
	var tok struct {
		Access string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal(raw, &tok))
	get := func(path string) reply { return s.do("GET", s.URLs().Graph+"/v1.0/"+path, nil, tok.Access, nil) }
	require.Equal(t, 401, s.do("GET", s.URLs().Graph+"/v1.0/chats/x/messages/1", nil, s.token, nil).status)
	files := []File{{Name: "plan.txt", MIME: "text/plain", Body: []byte("plan")}}
	inGroup := s.Write(Post{Room: group.ID, Text: "file", Mention: true, Files: files})
	a := s.next()
	require.Len(t, a["attachments"], 1, "the mirror only")
	root := s.Write(Post{Room: team.ID, Text: "file", Mention: true, Files: files})
	s.next()
	for _, path := range []string{"chats/" + group.ID + "/messages/" + inGroup, "teams/" + team.Group + "/channels/" + team.ID + "/messages/" + root} {
		var m struct {
			Attachments []struct{ ContentType, ContentURL, Name string }
		}
		r := get(path)
		require.Equal(t, 200, r.status, "%s", r.body)
		require.NoError(t, json.Unmarshal(r.body, &m))
		require.Equal(t, "reference", m.Attachments[0].ContentType)
		share := "shares/u!" + base64.RawURLEncoding.EncodeToString([]byte(m.Attachments[0].ContentURL)) + "/driveItem"
		require.Equal(t, 200, get(share).status)
		require.Equal(t, "plan", string(get(share+"/content").body))
	}
	require.Equal(t, 404, get("shares/u!eA/driveItem").status)
	require.Equal(t, 404, get("chats/"+group.ID+"/messages/1").status)
	up := s.do("PUT", s.URLs().Graph+"/v1.0/drives/d/root:/Herald/out.txt:/content", []byte("out"), tok.Access, nil)
	require.Equal(t, 201, up.status, "%s", up.body)
	var item struct{ WebURL string }
	require.NoError(t, json.Unmarshal(up.body, &item))
	r := s.send(group.ID, map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": fileInfoCard,
		"contentUrl": item.WebURL, "name": "out.txt", "content": map[string]any{"fileType": "txt"}}}})
	require.Equal(t, 201, r.status, "%s", r.body)
	require.Equal(t, "out", string(s.Visible(group.ID)[0].Files[0].Body))
	require.Equal(t, []string{"GET /graph/v1.0/chats/x/messages/1 carried the connector's token"}, s.Leaks())

	s = newStage(t, Options{NoGraph: true, Keep: 3})
	_, raw = s.fetchToken(s.Secret(), graphScope)
	require.NoError(t, json.Unmarshal(raw, &tok))
	require.Equal(t, 403, s.do("GET", s.URLs().Graph+"/v1.0/chats/x/messages/1", nil, tok.Access, nil).status)
	for range 20 {
		s.Say(s.chat.ID, "x")
	}
	require.LessOrEqual(t, len(s.Acts("")), 6, "a soak run does not grow")
	require.Eventually(t, func() bool { return s.Pending() == 0 }, 10*time.Second, time.Millisecond)
}
