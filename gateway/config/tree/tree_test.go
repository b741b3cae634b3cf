package tree

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// shop is a set of settings that Herald does not have.
type shop struct {
	Open  bool              `yaml:"open" default:"true" doc:"customers may come in"`
	Till  till              `yaml:"till" short:"kind" doc:"where money goes" reload:"restart"`
	Signs map[string]string `yaml:"signs" keys:"door" doc:"what stands on the doors"`
	Goods goods             `yaml:"goods" doc:"what is sold"`
}

type till struct {
	Kind string           `yaml:"kind" default:"wood" oneof:"wood,steel" doc:"what it is made of"`
	Code platforms.Secret `yaml:"code" env:"TILL_CODE" doc:"what opens it"`
	Wait time.Duration    `yaml:"wait" default:"3s" min:"1s" max:"1m" doc:"how long it stays open"`
}

type goods struct {
	Parts
	made int // no setting
}

var _ = goods{}.made

type fruit struct {
	Kinds []string `yaml:"kinds" default:"apple" env:"{N}_KINDS" doc:"which ones" reload:"adapter"`
	Price int      `yaml:"price" default:"3" min:"0" max:"9" doc:"of one"`
}

func shopTree() *Tree {
	return New(Spec{Root: reflect.TypeFor[shop](), Prefix: "SHOP_", Foreign: []string{"SHOP_HOME"}, Bare: "goods", Loose: "extra", Inner: "till", Title: "A shop",
		Names: map[string][]string{"door": {"front", "back"}}, Renamed: []Renaming{{"closed", ""}, {"cash", "till.kind"}},
		Parts: []Part{
			{Name: "fruit", Label: "FRUIT", Doc: "from trees", Type: reflect.TypeFor[fruit]()},
			{Name: "nuts", Doc: "from hedges", Reload: ReloadRestart, Type: reflect.TypeFor[fruit]()},
		}})
}

func loadShop(t *testing.T, yaml string, environ ...string) (*shop, *Report) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(yaml), 0o600))
	s := &shop{}
	return s, shopTree().Load(Source{Home: dir, Environ: environ, Flags: map[string]string{"goods.nuts.price": "7"}}, s)
}

// Blocks that are known at run time only are read, shown, compared and kept as all others are.
func TestTree_Parts(t *testing.T) {
	tree := shopTree()
	s, r := loadShop(t, "fruit: {price: 4, extra: {kinds: [pear, plum]}}\ngoods: {nuts: {kinds: hazel}}\nsigns: {front: welcome, side: x}\nclosed: yes\ncash: steel\n",
		"SHOP_FRUIT_PRICE=5", "SHOP_HOME=/", "TILL_CODE=4711", "SHOP_FRIUT_PRICE=1", "SHOP_GOODS_NUTS_KINDS=[wal, pea]")
	require.NoError(t, r.Err())
	f, nuts := s.Goods.Parts[0].(*fruit), s.Goods.Parts[1].(*fruit)
	require.Equal(t, &fruit{Kinds: []string{"pear", "plum"}, Price: 5}, f)
	require.Equal(t, &fruit{Kinds: []string{"wal", "pea"}, Price: 7}, nuts)
	require.Equal(t, "steel", s.Till.Kind)
	require.Equal(t, map[string]string{"front": "welcome"}, s.Signs)
	var warnings []string
	for _, w := range r.Warnings {
		warnings = append(warnings, w.Key+": "+w.Text)
	}
	require.ElementsMatch(t, []string{"signs.side: no such door, ignored", "closed: has no effect any more; remove it", "cash: is now called till.kind",
		": unknown variable, ignored; did you mean SHOP_FRUIT_PRICE?"}, warnings)
	require.Equal(t, []string{"4711"}, tree.Secrets(s))
	require.Contains(t, string(tree.Show(s, r)), "    price: 5 # env SHOP_FRUIT_PRICE\n")
	require.Contains(t, string(tree.Reference()), "## `goods.fruit`\n\nWhat it is for: from trees.\n")

	before := &shop{}
	tree.Default(before)
	require.Equal(t, &fruit{Kinds: []string{"apple"}, Price: 3}, before.Goods.Parts[1])
	changes := tree.Diff(before, s)
	require.Contains(t, changes, Change{Key: "goods.fruit.kinds", Old: "apple", New: "pear, plum", Reload: ReloadAdapter, Part: "fruit"})
	require.Contains(t, changes, Change{Key: "goods.nuts.price", Old: "3", New: "7", Reload: ReloadRestart, Part: "nuts"})

	now := *s
	tree.KeepRunning(before, &now)
	require.Equal(t, 3, now.Goods.Parts[1].(*fruit).Price, "it needs a restart")
	require.Equal(t, 5, now.Goods.Parts[0].(*fruit).Price)
	require.Equal(t, "wood", now.Till.Kind)
	require.Equal(t, 7, nuts.Price, "what was loaded has not changed")
	require.Same(t, nuts, s.Goods.Parts[1])
}

// A key of the top level is understood in the inner block too.
func TestTree_Inner(t *testing.T) {
	s, r := loadShop(t, "till: {open: no, kind: steel}\n")
	require.NoError(t, r.Err())
	require.False(t, s.Open)
	require.Equal(t, "steel", s.Till.Kind)
}
