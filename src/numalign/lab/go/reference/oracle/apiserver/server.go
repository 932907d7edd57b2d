// Package apiserver is all of Kubernetes that the plugin talks to: NRTs and pods in memory, with get, list and watch.
//
// It is an http.RoundTripper, so the plugin's own clients and informers use it without a socket in between. The player of a
// history writes objects with Put and Delete. A Fence is an event that every watcher sees and that is in no list: who has
// seen it has seen all changes before it.
package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

// The resources that are served, by their path.
const (
	NRTs = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
	Pods = "/api/v1/pods"
)

// Server holds the objects of one history.
type Server struct {
	lock      sync.Mutex
	version   int
	resources map[string]*resource
}

// New gives an empty server.
func New() *Server {
	return &Server{resources: map[string]*resource{
		NRTs: newResource("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"),
		Pods: newResource("v1", "Pod"),
	}}
}

// Config is how clients reach the server. They are not throttled.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://reference", Transport: s, QPS: -1}
}

// Put adds or replaces an object and tells the watchers.
func (s *Server) Put(path string, object metav1.Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.version++
	return s.resources[path].put(object, s.version)
}

// Delete removes an object, if it is there, and tells the watchers.
func (s *Server) Delete(path, namespace, name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.resources[path].delete(key(namespace, name))
}

// Fence sends an event about an object that does not exist.
func (s *Server) Fence(path, event string, object metav1.Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.version++
	return s.resources[path].fence(event, object, s.version)
}

// Watched tells whether somebody watches the resource.
func (s *Server) Watched(path string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.resources[path].watches) > 0
}

// RoundTrip answers a request.
func (s *Server) RoundTrip(request *http.Request) (*http.Response, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	path := request.URL.Path
	if text, found := discovery[path]; found {
		return answer(request, http.StatusOK, []byte(text)), nil
	}
	if kept, found := s.resources[path]; found {
		return s.collection(request, kept)
	}
	folder, name := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
	if kept, found := s.resources[folder]; found && kept.objects[key("", name)] != nil {
		return answer(request, http.StatusOK, kept.objects[key("", name)].text), nil
	}
	return missing(request), nil
}

func (s *Server) collection(request *http.Request, kept *resource) (*http.Response, error) {
	query := request.URL.Query()
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	if watch := query.Get("watch"); watch == "true" || watch == "1" {
		return respond(request, http.StatusOK, kept.watch(request.Context(), selector)), nil
	}
	return answer(request, http.StatusOK, kept.list(selector, s.version)), nil
}

func missing(request *http.Request) *http.Response {
	status := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Message: request.URL.Path + " not found"}
	text, _ := json.Marshal(status)
	return answer(request, http.StatusNotFound, text)
}

func answer(request *http.Request, code int, text []byte) *http.Response {
	return respond(request, code, io.NopCloser(bytes.NewReader(text)))
}

func respond(request *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: request}
}

// discovery is what a client reads to find out where NRTs are.
var discovery = map[string]string{
	"/api": `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"topology.node.k8s.io",
		"versions":[{"groupVersion":"topology.node.k8s.io/v1alpha2","version":"v1alpha2"}],
		"preferredVersion":{"groupVersion":"topology.node.k8s.io/v1alpha2","version":"v1alpha2"}}]}`,
	"/apis/topology.node.k8s.io/v1alpha2": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"topology.node.k8s.io/v1alpha2",
		"resources":[{"name":"noderesourcetopologies","singularName":"noderesourcetopology","namespaced":false,
		"kind":"NodeResourceTopology","verbs":["get","list","watch"]}]}`,
}
