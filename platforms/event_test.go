package platforms

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a platform says of the time never keeps an event from being kept: a number that is no time is none.
func TestInstant(t *testing.T) {
	for _, c := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Unix(1_700_000_000, 0).In(time.FixedZone("", 3600)), time.Unix(1_700_000_000, 0).UTC()},
		{time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		{time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)), time.Time{}},
		{time.Unix(1_700_055_555_500_000, 0), time.Time{}},
		{time.Unix(-1_700_055_555_500_000, 0), time.Time{}},
	} {
		got := Instant(c.in)
		require.Equal(t, c.want, got, c.in)
		_, err := json.Marshal(Event{At: got})
		require.NoError(t, err)
	}
	e := Event{ID: "1", Address: Address{Platform: "p", Account: "a", Chat: "c"}, Message: &Message{}, At: time.Unix(1_700_055_555_500_000, 0)}
	require.ErrorContains(t, e.Validate(), "no calendar has the time")
}

func TestKindOf(t *testing.T) {
	for mime, want := range map[string]AttachmentKind{
		"image/png": Image, "IMAGE/PNG": Image, "video/mp4": Video, "audio/ogg; codecs=opus": Audio, "application/pdf": Document, "": Document, "imagery": Document,
	} {
		require.Equal(t, want, KindOf(mime), mime)
	}
}

func TestText_AsBodyAndPlain(t *testing.T) {
	require.Equal(t, "<b>x</b>", Text{Body: "<b>x</b>", Plain: "x"}.AsBody())
	require.Equal(t, "x", Text{Body: "<b>x</b>", Plain: "x"}.AsPlain())
	require.Equal(t, "x", Text{Plain: "x"}.AsBody())
	require.Equal(t, "<b>x</b>", Text{Body: "<b>x</b>"}.AsPlain())
	require.Empty(t, Text{}.AsBody())
}
