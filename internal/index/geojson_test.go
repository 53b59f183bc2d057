package index

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"

	"svc/internal/document"
	"svc/internal/geo"
	"svc/internal/vfs"
	"svc/segment"
)

func TestParseGeoJSON(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{`{"type":"Point","coordinates":[2,3]}`, "[{1 [[{2 3}]]}]"},
		{`{"coordinates":[2,-3.5e0,100],"bbox":[1],"type":"Po\u0069nt"}`, "[{1 [[{2 -3.5}]]}]"},
		{`{"type":"LineString","coordinates":[[1,2],[3,4]]}`, "[{2 [[{1 2} {3 4}]]}]"},
		{`{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,0]],[[1,1],[2,1],[2,2]]]}`, "[{3 [[{0 0} {9 0} {9 9}] [{1 1} {2 1} {2 2}]]}]"},
		{`{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}`, "[{1 [[{1 2}]]} {1 [[{3 4}]]}]"},
		{`{"type":"MultiLineString","coordinates":[[[1,2],[3,4]],[]]}`, "[{2 [[{1 2} {3 4}]]}]"},
		{`{"type":"MultiPolygon","coordinates":[[[[0,0],[9,0],[9,9],[0,0]]],[]]}`, "[{3 [[{0 0} {9 0} {9 9}]]}]"},
		{`{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]},{"type":"GeometryCollection","geometries":[]}]}`, "[{1 [[{1 2}]]}]"},
		{`{"type":"Feature","geometry":{"type":"Point","coordinates":[7,8]},"properties":{"type":1}}`, "[{1 [[{7 8}]]}]"},
		{`{"type":"Feature","geometry":null}`, "[]"},
		{`{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[7,8]}}]}`, "[{1 [[{7 8}]]}]"},
		{`{"type":"Polygon","coordinates":[]}`, "[]"},

		{`"point"`, "is not an object"}, {`3`, "is not an object"}, {`[1,2]`, "is not an object"},
		{`{}`, "`type`"}, {`{"coordinates":[1,2]}`, "`type`"}, {`{"type":3}`, "which is not a string"},
		{`{"type":"Point"}`, "needs `coordinates`"}, {`{"type":"Feature"}`, "needs `geometry`"},
		{`{"type":"FeatureCollection"}`, "needs `features`"}, {`{"type":"GeometryCollection"}`, "needs `geometries`"},
		{`{"type":"Circle","coordinates":[1,2]}`, "`Circle`"}, {`{"type":"point","coordinates":[1,2]}`, "`point`"},
		{`{"type":"Point","coordinates":[]}`, "longitude and a latitude"}, {`{"type":"Point","coordinates":[1]}`, "longitude and a latitude"},
		{`{"type":"Point","coordinates":["a","b"]}`, "number"}, {`{"type":"Point","coordinates":["1","2"]}`, "number"},
		{`{"type":"Point","coordinates":[1,null]}`, "number"}, {`{"type":"Point","coordinates":null}`, "array"},
		{`{"type":"Polygon","coordinates":[[1,2]]}`, "array"}, {`{"type":"LineString","coordinates":[1,2]}`, "array"},
		{`{"type":"MultiPolygon","coordinates":[[[1,2]]]}`, "array"},
		{`{"type":"Feature","geometry":{"type":"Feature","geometry":null}}`, "`Feature`"},
		{`{"type":"Feature","geometry":[1]}`, "is not an object"},
		{`{"type":"FeatureCollection","features":[{"type":"FeatureCollection","features":[]}]}`, "`FeatureCollection`"},
		{`{"type":"FeatureCollection","features":{}}`, "array"},
		{`{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1]}]}`, "longitude and a latitude"},
	} {
		parts, reason := parseGeoJSON([]byte(c.value))
		if strings.HasPrefix(c.want, "[") && (fmt.Sprint(parts) != c.want || reason != "") {
			t.Errorf("%s: %v, %q, want %s", c.value, parts, reason, c.want)
		} else if !strings.HasPrefix(c.want, "[") && !strings.Contains(reason, c.want) {
			t.Errorf("%s: %v, %q, want %q", c.value, parts, reason, c.want)
		}
	}
}

func FuzzGeoJSON(f *testing.F) {
	for _, s := range []string{
		`{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,0]],[[1,1],[2,1],[2,2]]]}`,
		`{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[7,8.5,9]}}]}`,
		`{"type":"GeometryCollection","geometries":[{"type":"MultiPoint","coordinates":[[1e300,2],[-3,4]]}]}`, `{"type":"Point","coordinates":[1,"2"]}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var lines strings.Builder
		if n, err := document.Convert(&lines, strings.NewReader(`[{"_geojson":`+string(value)+`}]`), document.JSON, ','); err != nil || n != 1 {
			return
		}
		doc := strings.TrimSuffix(lines.String(), "\n")
		if !json.Valid([]byte(doc)) {
			return
		}
		parts, reason := shapeOf([]byte(doc))
		if reason != "" && parts != nil {
			t.Fatalf("%s: %v and %s", doc, parts, reason)
		}
		b := segment.NewBuilder(segment.BuilderOptions{})
		b.StartDoc(0, []byte("0"), []byte(doc))
		for i := range parts {
			b.Shape(&parts[i])
		}
		b.EndDoc()
		fs := vfs.NewMem()
		if _, err := b.Write(context.Background(), fs, "s.seg"); err != nil {
			t.Fatal(err)
		}
		r, err := segment.Open(fs, "s.seg")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		if (r.Shapes() != nil) != (len(parts) > 0) {
			t.Fatalf("%s: %v", doc, parts)
		}
	})
}

// zones counts the documents with a shape around 40, 40.
func zones(ix *Index) (n uint64) {
	v := held(ix.View())
	defer v.Release()
	for _, l := range v.Segments {
		if s := l.Shapes(); s != nil {
			rows := roaring.New()
			s.AddRowsMeeting(rows, geo.CircleRegion(40, 40, 1000, 8))
			rows.And(l.LiveRows())
			n += rows.GetCardinality()
		}
	}
	return n
}

const zone = `"_geojson":{"type":"Point","coordinates":[40,40]}`

func TestShapesAreCheckedWhileGeoJSONIsInUse(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()

	// Without the setting the field may have any value.
	free := b.create("free")
	b.apply(free, b.payload(`{"id":1,"_geojson":"point"}`, `{"id":2,`+zone+`,"_geo":5}`))
	b.batch++
	_, err := free.Apply(context.Background(), b.batch, []Op{update(t, `{"filterableAttributes":["_geojson"]}`)}, nil)
	wantCode(t, err, "invalid_document_geo_field")
	b.apply(free, b.payload(`{"id":1,"_geojson":null}`))
	b.apply(free, update(t, `{"filterableAttributes":["_geojson"]}`)) // does not concern _geo
	if n := zones(free); n != 1 {
		t.Errorf("%d shapes, want 1", n)
	}

	// With the setting, a bad shape fails its payload.
	for _, g := range []string{`"point"`, `{"type":"Point","coordinates":[1]}`, `{}`} {
		r := b.try(free, b.payload(`{"id":1,"_geojson":`+g+`}`), b.merge(`{"id":2,"_geojson":`+g+`}`))
		wantCode(t, r[0].Err, "invalid_document_geo_field")
		wantCode(t, r[1].Err, "invalid_document_geo_field")
	}
	b.apply(free, b.merge(`{"id":1,`+zone+`}`))
	if n := zones(free); n != 2 {
		t.Errorf("%d shapes after a change, want 2", n)
	}
	b.apply(free, b.payload(`{"id":2}`))
	if n := zones(free); n != 1 {
		t.Errorf("%d shapes after one was removed, want 1", n)
	}
}

// TestPatternsDoNotCheckPlaces checks that a pattern which covers _geo and _geojson accepts any values, and that the plain names do not.
func TestPatternsDoNotCheckPlaces(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("free")
	const all = `{"filterableAttributes":[{"attributePatterns":["*"]}]}`
	b.apply(ix, b.payload(`{"id":1,"_geo":"Rome","_geojson":5}`))
	b.apply(ix, update(t, all), b.payload(`{"id":2,"_geo":{"city":"Oslo"}}`, `{"id":3,`+zone+`}`))
	b.batch++
	_, err := ix.Apply(context.Background(), b.batch, []Op{update(t, `{"filterableAttributes":["_geo"]}`)}, nil)
	wantCode(t, err, "invalid_document_geo_field")
	b.apply(ix, b.payload(`{"id":1}`, `{"id":2}`))
	b.apply(ix, b.payload(`{"id":4,"_geojson":7}`), update(t, `{"filterableAttributes":[{"attributePatterns":["_geojson"]}]}`))
	b.apply(ix, DeleteDocuments{[]string{"4"}}, update(t, `{"filterableAttributes":["_geojson"]}`))
	if n := zones(ix); n != 1 {
		t.Errorf("%d shapes, want 1", n)
	}
}

// TestOldSegmentsAreReadAgainForShapes checks that a segment whose footer says that its writer did not know shapes is read again.
func TestOldSegmentsAreReadAgainForShapes(t *testing.T) {
	fsys := vfs.NewMem()
	b := newBed(t, fsys, Options{})
	ix := b.create("zones")
	b.apply(ix, b.payload(`{"id":1,`+zone+`}`, `{"id":2}`))
	b.close()
	const name = catalogDir + "/000000/000000.seg"
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	footer := data[len(data)-64:] // docs/SEGMENT.md
	binary.LittleEndian.PutUint32(footer[32:], 2)
	binary.LittleEndian.PutUint64(footer[48:], xxhash.Sum64(footer[:48]))
	if err := vfs.WriteFile(fsys, name, data); err != nil {
		t.Fatal(err)
	}
	b.open()
	defer b.close()
	ix = b.c.Get("zones")
	record := func() bool {
		v := held(ix.View())
		defer v.Release()
		return len(v.Segments) == 1 && v.Segments[0].RecordsShapes()
	}
	b.apply(ix, update(t, `{"filterableAttributes":["_geo"]}`))
	if record() {
		t.Fatal("the segment was rewritten although only points came into use")
	}
	b.apply(ix, update(t, `{"filterableAttributes":["_geojson"]}`))
	if n := zones(ix); !record() || n != 1 {
		t.Errorf("%d shapes, want 1; the segment records shapes: %v", n, record())
	}
}
