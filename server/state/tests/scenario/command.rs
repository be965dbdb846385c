//! The commands of scenarios.
//!
//! - `allocate container=C SLOTS [requested=A,B] [pod=NAMESPACE/NAME uid=U] [space=S]`: ADD. `SLOTS`
//!   from left to right: `range=CIDR` or `pool=NAME` begins a slot, `or-range=`, `or-pool=` adds an
//!   alternative to it; `first= last= exclude=A,B gateway= whole lenient` say more of the range
//!   before them. `C{1..3}` anywhere makes three commands.
//! - `release`, `abort container=C [spooled] [previous=A,B]`: DEL, and the abort of an ADD.
//! - `collect node=N victim=C[@REVISION] …`: GC; without a revision the one that is there.
//! - `pool-create NAME cidr= …`, `pool-update NAME …`, `pool-delete NAME`, with `first= last= exclude=
//!   gateway= allocate-gateway whole order= cool-down= if-revision=`. An update starts from what is.
//! - `reserve A[-B] [for=NAMESPACE/NAME]`, `unreserve A[-B]`.
//! - `advance 31s`, `restart` (from the stored records), `birth ID`, `new` (an empty state).
//! - `range CIDR …`, `pools`, `owners`, `address A …`, `node N`, `fences`: questions.
//!
//! Everywhere: `node=n1 if=net1 network=net space=default machine=m1`, and `stamp=EPOCH:NANOSECONDS`,
//! by default of epoch 1 and newer with each command; `boot=`, by default one of its own an epoch.

use std::net::IpAddr;

use quorate_state::State;
use quorate_state::command::{
    Allocate, Collect, Command, InlineRange, PoolChoice, PoolSpec, Release, ReservationSpec, Slot,
};
use quorate_state::types::{
    AttachmentKey, Dns, Netns, NodeKey, Order, Pod, PoolKey, Revision, Stamp,
};

use super::words::{Words, duration_ms, network, networks, parse, span};
use super::{Runner, show};

const WHO: [&str; 7] = ["node", "container", "if", "network", "space", "machine", "stamp"];

impl Runner {
    pub(super) fn command(&mut self, line: &str) -> Result<String, String> {
        let words = Words::of(line);
        self.index += 1;
        match words.verb {
            "allocate" => self.apply(self.allocate(&words)?),
            "release" => self.apply(Command::Release(self.release(&words)?)),
            "abort" => self.apply(Command::Abort(self.release(&words)?)),
            "collect" => self.apply(self.collect(&words)?),
            "pool-create" => self.apply(Command::CreatePool(pool(&words, None)?)),
            "pool-update" => self.apply(self.pool_update(&words)?),
            "pool-delete" => self.apply(Command::DeletePool(pool_key(&words)?)),
            "reserve" => self.apply(reserve(&words)?),
            "unreserve" => {
                let (first, last) = span(words.plain(0)?)?;
                let space = words.text_or("space", "default");
                self.apply(Command::DeleteReservation { space, first, last })
            }
            "birth" => self.apply(Command::Birth {
                cluster_id: words.plain(0)?.to_owned(),
                incarnation: words.plain(0)?.to_owned(),
            }),
            "new" => {
                *self = Runner::new();
                Ok(String::new())
            }
            "advance" => self.advance(&words),
            "restart" => self.restart(),
            "range" => range(&words),
            "pools" => Ok(show::pools(&self.state)),
            "owners" => Ok(show::owners(&self.state, &words.text_or("space", "default"))),
            "fences" => Ok(show::fences(&self.state)),
            "node" => Ok(show::node(&self.state, &node(words.plain(0)?))),
            "address" => {
                let space = words.text_or("space", "default");
                let address = parse(words.plain(0)?)?;
                Ok(show::address(&self.state, &space, address))
            }
            other => Err(other.to_owned()),
        }
    }

    fn apply(&mut self, command: Command) -> Result<String, String> {
        let (outcome, changes) = self.state.apply(&command, self.at());
        Ok(show::outcome(&outcome, &changes))
    }

    fn advance(&mut self, words: &Words<'_>) -> Result<String, String> {
        self.clock_ms += duration_ms(words.plain(0)?)?;
        // Time moves with the log: an entry that asks for nothing brings it.
        let nothing = Command::DeleteReservation {
            space: "nowhere".into(),
            first: [0, 0, 0, 0].into(),
            last: [0, 0, 0, 0].into(),
        };
        self.apply(nothing).map(|_refusal| String::new())
    }

    fn restart(&mut self) -> Result<String, String> {
        let reloaded = State::from_records(self.state.records()).map_err(|e| e.to_string())?;
        let same = reloaded.digest() == self.state.digest();
        self.state = reloaded;
        Ok(if same { "the same state" } else { "ANOTHER STATE" }.to_owned())
    }

    fn stamp(&self, words: &Words<'_>) -> Result<Stamp, String> {
        let now = Stamp { epoch: 1, boot_ns: self.index * 1_000 };
        Ok(words.stamp()?.unwrap_or(now))
    }

    fn allocate(&self, words: &Words<'_>) -> Result<Command, String> {
        words.only(
            &[
                &WHO[..],
                &["requested", "pod", "uid", "boot", "pool", "or-pool", "range", "or-range"],
                &["first", "last", "exclude", "gateway", "whole", "lenient"],
            ]
            .concat(),
        )?;
        let (namespace, name) =
            words.text("pod").and_then(|p| p.split_once('/')).unwrap_or_default();
        Ok(Command::Allocate(Box::new(Allocate {
            attachment: attachment(words),
            stamp: self.stamp(words)?,
            space: words.text_or("space", "default"),
            slots: slots(words)?,
            requested: words
                .text("requested")
                .map_or(Ok(Vec::new()), |all| all.split(',').map(parse).collect())?,
            pod: Pod {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                uid: words.text_or("uid", ""),
            },
            netns: Netns::default(),
            boot_id: boot(words, self.stamp(words)?),
            machine_id: words.text_or("machine", "m1"),
        })))
    }

    fn release(&self, words: &Words<'_>) -> Result<Release, String> {
        words.only(&[&WHO[..], &["spooled", "boot", "previous"]].concat())?;
        let stamp = self.stamp(words)?;
        let previous = words.text("previous").unwrap_or_default();
        let previous = previous.split(',').filter(|text| !text.is_empty());
        let previous: Result<_, _> = previous.map(str::parse).collect();
        Ok(Release {
            attachment: attachment(words),
            stamp,
            spooled: words.has("spooled"),
            boot_id: boot(words, stamp),
            previous: previous.map_err(|error| format!("previous: {error}"))?,
        })
    }

    fn collect(&self, words: &Words<'_>) -> Result<Command, String> {
        words.only(&[&WHO[..], &["victim", "boot"]].concat())?;
        let victims = words.pairs.iter().filter(|(name, _)| *name == "victim");
        let victims: Result<Vec<_>, String> = victims
            .map(|(_, victim)| {
                let (container, at) = victim.split_once('@').unwrap_or((victim, ""));
                let key = AttachmentKey { container_id: container.to_owned(), ..attachment(words) };
                let index = match at {
                    "" => self.state.allocation(&key).map_or(0, |held| held.revision.index),
                    at => parse(at)?,
                };
                Ok((key, Revision { index, position: 0 }))
            })
            .collect();
        Ok(Command::Collect(Collect {
            node: attachment(words).node,
            stamp: self.stamp(words)?,
            boot_id: boot(words, self.stamp(words)?),
            machine_id: words.text_or("machine", "m1"),
            victims: victims?,
        }))
    }

    fn pool_update(&self, words: &Words<'_>) -> Result<Command, String> {
        let stored = self.state.pool(&pool_key(words)?).map(|pool| pool.spec.clone());
        let if_revision = words
            .text("if-revision")
            .map(|index| Ok::<_, String>(Revision { index: parse(index)?, position: 0 }))
            .transpose()?;
        Ok(Command::UpdatePool { spec: pool(words, stored)?, if_revision })
    }
}

fn node(name: &str) -> NodeKey {
    NodeKey { cluster: "c1".into(), name: name.to_owned() }
}

fn attachment(words: &Words<'_>) -> AttachmentKey {
    AttachmentKey {
        node: node(&words.text_or("node", "n1")),
        container_id: words.text_or("container", ""),
        ifname: words.text_or("if", "net1"),
        network: words.text_or("network", "net"),
    }
}

fn slots(words: &Words<'_>) -> Result<Vec<Slot>, String> {
    let mut slots: Vec<Slot> = Vec::new();
    for (name, value) in &words.pairs {
        let choice = match *name {
            "range" | "or-range" => PoolChoice::Inline(inline(value)?),
            "pool" | "or-pool" => PoolChoice::Named((*value).to_owned()),
            _ => {
                narrow(slots.last_mut().and_then(|slot| slot.choices.last_mut()), name, value)?;
                continue;
            }
        };
        match slots.last_mut() {
            Some(slot) if name.starts_with("or-") => slot.choices.push(choice),
            _ => slots.push(Slot { choices: vec![choice] }),
        }
    }
    Ok(slots)
}

fn inline(cidr: &str) -> Result<InlineRange, String> {
    Ok(InlineRange {
        cidr: network(cidr)?,
        first: None,
        last: None,
        exclude: Vec::new(),
        gateway: None,
        whole_prefix: false,
        lenient: false,
    })
}

/// Bounds belong to the range before them.
fn narrow(choice: Option<&mut PoolChoice>, name: &str, value: &str) -> Result<(), String> {
    let bound = ["first", "last", "exclude", "gateway", "whole", "lenient"].contains(&name);
    let range = match choice {
        Some(PoolChoice::Inline(range)) => range,
        _ if bound => return Err(format!("{name} needs a range before it")),
        _ => return Ok(()),
    };
    match name {
        "first" => range.first = Some(parse(value)?),
        "last" => range.last = Some(parse(value)?),
        "exclude" => range.exclude = networks(value)?,
        "gateway" => range.gateway = Some(parse(value)?),
        "whole" => range.whole_prefix = true,
        "lenient" => range.lenient = true,
        _ => {}
    }
    Ok(())
}

fn pool_key(words: &Words<'_>) -> Result<PoolKey, String> {
    Ok(PoolKey { space: words.text_or("space", "default"), name: words.plain(0)?.to_owned() })
}

/// The definition that the words give, over the one that is there already.
fn pool(words: &Words<'_>, stored: Option<PoolSpec>) -> Result<PoolSpec, String> {
    words.only(&[
        "space",
        "cidr",
        "first",
        "last",
        "exclude",
        "gateway",
        "allocate-gateway",
        "whole",
        "order",
        "cool-down",
        "if-revision",
    ])?;
    let mut spec = match stored {
        Some(spec) => spec,
        None => PoolSpec {
            key: pool_key(words)?,
            cidr: network(words.text("cidr").ok_or("a pool needs a cidr")?)?,
            first: None,
            last: None,
            exclude: Vec::new(),
            gateway: None,
            allocate_gateway: false,
            whole_prefix: false,
            routes: Vec::new(),
            dns: Dns::default(),
            order: Order::Lowest,
            cool_down_ms: 30_000,
        },
    };
    let address = |text: &str| if text == "none" { Ok(None) } else { parse(text).map(Some) };
    for (name, value) in &words.pairs {
        match *name {
            "cidr" => spec.cidr = network(value)?,
            "first" => spec.first = address(value)?,
            "last" => spec.last = address(value)?,
            "exclude" => spec.exclude = networks(value)?,
            "gateway" => spec.gateway = address(value)?,
            "allocate-gateway" => spec.allocate_gateway = true,
            "whole" => spec.whole_prefix = true,
            "cool-down" => spec.cool_down_ms = duration_ms(value)?,
            "order" => {
                spec.order = match *value {
                    "lowest" => Order::Lowest,
                    "sequential" => Order::Sequential,
                    other => return Err(format!("order {other}")),
                }
            }
            _ => {}
        }
    }
    Ok(spec)
}

fn reserve(words: &Words<'_>) -> Result<Command, String> {
    let (first, last) = span(words.plain(0)?)?;
    Ok(Command::CreateReservation(ReservationSpec {
        space: words.text_or("space", "default"),
        first,
        last,
        identity: words.text("for").map(str::to_owned),
        note: words.text_or("note", ""),
    }))
}

fn range(words: &Words<'_>) -> Result<String, String> {
    let cidr = network(words.plain(0)?)?;
    let bound = |name: &str| words.text(name).map(parse::<IpAddr>).transpose();
    let bounds = quorate_state::range::Bounds {
        first: bound("first")?,
        last: bound("last")?,
        whole_prefix: words.has("whole"),
        lenient: words.has("lenient"),
    };
    Ok(show::range(quorate_state::range::usable(cidr, bounds)))
}

/// Unless it is said, each epoch is a boot of its own.
fn boot(words: &Words<'_>, stamp: Stamp) -> String {
    words.text_or("boot", &format!("b{}", stamp.epoch))
}
