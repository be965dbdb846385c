use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    // Zero bytes, the escape's neighbours and multi-byte characters come up often.
    proptest::collection::vec(
        prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('b'), Just('\u{ff}'), any::<char>()],
        0..6,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from),
        Just(IpAddr::from([0, 0, 0, 0])),
    ]
}

fn pool() -> impl Strategy<Value = PoolKey> {
    (text(), text()).prop_map(|(space, name)| PoolKey { space, name })
}

fn attachment() -> impl Strategy<Value = AttachmentKey> {
    (text(), text(), text(), text(), text()).prop_map(
        |(cluster, name, container_id, ifname, network)| AttachmentKey {
            node: NodeKey { cluster, name },
            container_id,
            ifname,
            network,
        },
    )
}

fn key() -> impl Strategy<Value = Key> {
    let address = || (text(), address()).prop_map(|(space, address)| AddressKey { space, address });
    prop_oneof![
        Just(Key::Cluster),
        pool().prop_map(Key::Pool),
        pool().prop_map(Key::Cursor),
        attachment().prop_map(Key::Allocation),
        attachment().prop_map(Key::Fence),
        attachment().prop_map(|a| Key::Node(a.node)),
        address().prop_map(Key::Cooling),
        address().prop_map(Key::Reservation),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(index, position, ordinal)| Line {
        revision: Revision { index, position },
        ordinal,
    })
}

proptest! {
    #[test]
    fn records_come_back(key in key()) {
        let bytes = record(&key);
        prop_assert!(bytes.as_slice() > RECORDS && bytes.as_slice() < RECORDS_END);
        prop_assert_eq!(parse_record(&bytes), Ok(key));
    }

    #[test]
    fn records_sort_as_their_keys_do(a in key(), b in key()) {
        prop_assert_eq!(record(&a).cmp(&record(&b)), a.cmp(&b));
    }

    #[test]
    fn no_record_is_the_beginning_of_another(a in key(), b in key()) {
        prop_assert!(a == b || !record(&b).starts_with(&record(&a)));
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        for bytes in [bytes.clone(), [&[RECORD, 3][..], &bytes].concat()] {
            if let Ok(key) = parse_record(&bytes) {
                prop_assert_eq!(record(&key), bytes.clone());
            }
            prop_assert_eq!(parse_age(&bytes).is_ok(), bytes.len() == 17 && bytes[0] == AGE);
            let _ = (parse_history(&bytes).is_ok(), parse_age_value(&bytes).is_ok());
        }
    }

    #[test]
    fn history_is_newest_first_and_ages_oldest_first(
        space in text(), address in address(), a in line(), b in line()
    ) {
        let of = |line| history(&space, address, line);
        prop_assert_eq!(of(a).cmp(&of(b)), b.cmp(&a));
        prop_assert_eq!(age(a).cmp(&age(b)), a.cmp(&b));
        prop_assert!(of(a).starts_with(&history_of(&space, address)));
        prop_assert_eq!(parse_history(&of(a)), Ok(a));
        prop_assert_eq!(parse_age(&age(a)), Ok(a));
        let back = parse_age_value(&age_value(&space, address));
        prop_assert_eq!(back, Ok(AddressKey { space, address }));
    }

    #[test]
    fn entries_sort_by_index(a in any::<u64>(), b in any::<u64>()) {
        prop_assert_eq!(entry(a).cmp(&entry(b)), a.cmp(&b));
        prop_assert_eq!(entry_index(&entry(a)), Some(a));
        prop_assert!(&entry(a)[..] < ENTRIES_END);
    }
}
