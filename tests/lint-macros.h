/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lint-macros.h - what cppcheck, which reads no system headers, must know of the libraries. */
#define json_array_foreach(array, index, value) \
	for (index = 0; (value = json_array_get(array, index)); index++)
#define json_object_foreach(object, key, value) \
	for (void *at = json_object_iter(object); \
	     (key = json_object_iter_key(at)) && (value = json_object_iter_value(at)); \
	     at = json_object_iter_next(object, at))
#define DECLARE_LIBBPF_OPTS(type, name, ...) struct type name = {__VA_ARGS__}
#define nla_for_each_attr(attribute, first, size, rest) \
	for (attribute = first, rest = size; nla_ok(attribute, rest); \
	     attribute = nla_next(attribute, &rest))
#define nla_for_each_nested(attribute, nest, rest) \
	nla_for_each_attr(attribute, nla_data(nest), nla_len(nest), rest)
#define bpf_object__for_each_program(program, object) \
	for (program = 0; (program = bpf_object__next_program(object, program));)
/* Its parser knows no type that is another expression's. */
#define __typeof__(value) char *
