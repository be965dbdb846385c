//! Reading a JSON object key by key, so that what is left over is what nobody understands.

use std::mem;

use serde_json::{Map, Value};

use super::error::{Error, cut};

/// An object that is being read. Keys are compared exactly, then without case, as Go's decoder
/// does for the plugins whose configurations we take over. `null` counts as absent, and so does an
/// empty string.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    /// Of a value that must be an object; `path` is its name in messages.
    ///
    /// # Errors
    /// If it is something else.
    pub fn of(path: impl Into<String>, value: Value) -> Result<Fields, Error> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Fields { path, map }),
            other => Err(Error::of_type(path, "an object", &other)),
        }
    }

    /// The full name of one of its keys.
    pub fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Takes a value, of whatever type.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        let value = match self.map.remove(key) {
            Some(value) => value,
            None => {
                let spelled = self.map.keys().find(|name| name.eq_ignore_ascii_case(key))?.clone();
                self.map.remove(&spelled)?
            }
        };
        (!value.is_null()).then_some(value)
    }

    /// Takes a string.
    ///
    /// # Errors
    /// If it is of another type.
    pub fn string(&mut self, key: &str) -> Result<Option<String>, Error> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok((!text.is_empty()).then_some(text)),
            Some(other) => Err(Error::of_type(self.name(key), "a string", &other)),
        }
    }

    /// Takes a flag; absent means false.
    ///
    /// # Errors
    /// If it is of another type.
    pub fn flag(&mut self, key: &str) -> Result<bool, Error> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(Error::of_type(self.name(key), "true or false", &other)),
        }
    }

    /// Takes a whole number from 0.
    ///
    /// # Errors
    /// If it is something else.
    pub fn number(&mut self, key: &str) -> Result<Option<u64>, Error> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(Error::of_type(self.name(key), "a whole number from 0", &value)),
        }
    }

    /// Takes a list of at most `limit` elements; absent means empty.
    ///
    /// # Errors
    /// If it is of another type, or longer.
    pub fn list(&mut self, key: &str, limit: usize) -> Result<Vec<Value>, Error> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) if list.len() <= limit => Ok(list),
            Some(Value::Array(list)) => {
                Err(Error::TooMany { field: self.name(key), count: list.len(), limit })
            }
            Some(other) => Err(Error::of_type(self.name(key), "a list", &other)),
        }
    }

    /// Takes a list of strings.
    ///
    /// # Errors
    /// As [`Fields::list`], and if an element is no string.
    pub fn strings(&mut self, key: &str, limit: usize) -> Result<Vec<String>, Error> {
        let elements = self.list(key, limit)?.into_iter().enumerate();
        elements
            .map(|(position, element)| match element {
                Value::String(text) => Ok(text),
                other => {
                    let field = format!("{}[{position}]", self.name(key));
                    Err(Error::of_type(field, "a string", &other))
                }
            })
            .collect()
    }

    /// Takes an object; absent means empty.
    ///
    /// # Errors
    /// If it is of another type.
    pub fn object(&mut self, key: &str) -> Result<Fields, Error> {
        let path = self.name(key);
        match self.take(key) {
            None => Ok(Fields { path, map: Map::new() }),
            Some(value) => Fields::of(path, value),
        }
    }

    /// What nobody took: full names and values, cut to what a message shows.
    pub fn rest(&mut self) -> Vec<(String, String)> {
        let rest = mem::take(&mut self.map);
        rest.into_iter().map(|(key, value)| (self.name(&key), cut(&value.to_string()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use serde_json::json;

    #[test]
    fn wrong_types_are_named_with_field_and_value() {
        let mut fields = Fields::of("ipam", json!({"a": 1, "b": "x", "c": {}, "d": [1]})).unwrap();
        let text = fields.string("a").unwrap_err().to_string();
        assert_eq!(text, "ipam.a must be a string, not 1");
        let text = fields.list("b", 9).unwrap_err().to_string();
        assert_eq!(text, "ipam.b must be a list, not \"x\"");
        let text = fields.flag("c").unwrap_err().to_string();
        assert_eq!(text, "ipam.c must be true or false, not {}");
        let text = fields.strings("d", 9).unwrap_err().to_string();
        assert_eq!(text, "ipam.d[0] must be a string, not 1");
    }

    #[test]
    fn case_does_not_matter_and_the_rest_is_what_nobody_took() {
        let value = json!({"ipRanges": [], "Gateway": "", "dns": null, "gatway": "10.0.0.1"});
        let mut fields = Fields::of("ipam", value).unwrap();
        assert_eq!(fields.list("ipranges", 9).unwrap().len(), 0);
        assert_eq!(fields.string("gateway").unwrap(), None);
        assert!(fields.take("dns").is_none());
        assert_eq!(fields.rest(), [("ipam.gatway".to_owned(), "\"10.0.0.1\"".to_owned())]);
    }
}
