package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// object is one stored object: its JSON, and what a field selector can ask for.
type object struct {
	text   []byte
	fields fields.Set
}

// resource is the objects of one kind and the streams of those who watch them.
type resource struct {
	version schema.GroupVersion
	kind    string
	objects map[string]*object
	watches map[*stream]fields.Selector
}

func newResource(version, kind string) *resource {
	parsed, _ := schema.ParseGroupVersion(version)
	return &resource{version: parsed, kind: kind, objects: map[string]*object{}, watches: map[*stream]fields.Selector{}}
}

func key(namespace, name string) string { return namespace + "/" + name }

func (r *resource) put(given metav1.Object, version int) error {
	now, err := r.encode(given, version)
	if err != nil {
		return err
	}
	place := key(given.GetNamespace(), given.GetName())
	before := r.objects[place]
	r.objects[place] = now
	r.tell(before, now)
	return nil
}

func (r *resource) delete(place string) {
	if gone := r.objects[place]; gone != nil {
		delete(r.objects, place)
		r.tell(gone, nil)
	}
}

func (r *resource) fence(event string, given metav1.Object, version int) error {
	mark, err := r.encode(given, version)
	if err != nil {
		return err
	}
	for stream := range r.watches {
		stream.send(watch.EventType(event), mark.text)
	}
	return nil
}

// encode stamps the object with the server's version: informers take two objects of one version for the same.
func (r *resource) encode(given metav1.Object, version int) (*object, error) {
	given.SetResourceVersion(strconv.Itoa(version))
	given.(runtime.Object).GetObjectKind().SetGroupVersionKind(r.version.WithKind(r.kind))
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	shown := fields.Set{"metadata.name": given.GetName(), "metadata.namespace": given.GetNamespace()}
	if pod, isPod := given.(*v1.Pod); isPod {
		shown["spec.nodeName"], shown["status.phase"] = pod.Spec.NodeName, string(pod.Status.Phase)
	}
	return &object{text: text, fields: shown}, nil
}

// tell sends a change to the watchers. To one who selects, an object can appear and vanish by changing.
func (r *resource) tell(before, now *object) {
	for stream, selector := range r.watches {
		was := before != nil && selector.Matches(before.fields)
		is := now != nil && selector.Matches(now.fields)
		switch {
		case was && is:
			stream.send(watch.Modified, now.text)
		case is:
			stream.send(watch.Added, now.text)
		case was && now != nil:
			stream.send(watch.Deleted, now.text)
		case was:
			stream.send(watch.Deleted, before.text)
		}
	}
}

func (r *resource) list(selector fields.Selector, version int) []byte {
	var places []string
	for place, kept := range r.objects {
		if selector.Matches(kept.fields) {
			places = append(places, place)
		}
	}
	sort.Strings(places)
	var text bytes.Buffer
	fmt.Fprintf(&text, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%d"},"items":[`, r.kind, r.version, version)
	for i, place := range places {
		if i > 0 {
			text.WriteByte(',')
		}
		text.Write(r.objects[place].text)
	}
	text.WriteString("]}")
	return text.Bytes()
}

// watch opens a stream that lasts as long as the request.
func (r *resource) watch(ctx context.Context, selector fields.Selector) *stream {
	opened := newStream()
	r.watches[opened] = selector
	context.AfterFunc(ctx, func() { _ = opened.Close() })
	return opened
}
